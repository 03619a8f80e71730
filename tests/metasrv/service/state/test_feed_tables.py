"""Tables are told alike from their models and from their stored form."""

import orjson
import pytest

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import catalog_of, parts_of
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.log import SchemaDropping, TableAltered, TableCreated, TableDropped
from keys.model.tables import Constraint, ConstraintKind, Index, RegionState
from metasrv.service.state.feed_tables import PUBLIC, feed_json, feed_table
from metasrv_base.elements.states import ElementState
from tests.keys.catalog.logs import first_update, schema_created, update
from tests.keys.catalog.snapshots import ref_of
from tests.metasrv.holders.reader import mirror_of
from tests.procedures.harness.tables import table_info, table_route


def odd_catalog() -> Catalog:
    """Tables with all that a table may have, hidden, dropped, in a schema that goes, and lost."""
    full = table_info(1024, "full", 1)
    columns = (full.columns[0], full.columns[1].model_copy(update={"default": 'é"\u2028'}))
    index = Index(id=1, name="i", columns=(2,), unique=True, state=ElementState.DELETE_ONLY)
    check = Constraint(id=1, name="c", kind=ConstraintKind.CHECK, expression="id > 1", columns=(1,))
    full = full.model_copy(
        update={"columns": columns, "indexes": (index,), "constraints": (check,)}
    )
    infos = [full, *(table_info(1025 + n, f"t{n}", 1) for n in range(3))]
    infos.append(table_info(1029, "leaving", 1, "old"))
    lost = table_route(1025, ("dn-1",))
    (region,) = lost.region_routes
    lost = lost.model_copy(
        update={"region_routes": (region.model_copy(update={"state": RegionState.LOST}),)}
    )
    routes = {1025: lost}
    made = [
        TableCreated(
            info=info, route=routes.get(info.table_id) or table_route(info.table_id, ("dn-1",))
        )
        for info in infos
    ]
    hidden = infos[2].model_copy(update={"state": ElementState.WRITE_ONLY, "version": 2})
    schema = schema_created("old").info.model_copy(update={"dropping": "p"})
    catalog = Catalog().apply(first_update(), 1)
    catalog = catalog.apply(update(2, schema_created("old"), *made), 2)
    return catalog.apply(
        update(
            3,
            TableAltered(info=hidden),
            TableDropped(table_id=1027, dropped_at_ms=5, dropped_by="p"),
            SchemaDropping(info=schema),
        ),
        3,
    )


def packed(catalog: Catalog) -> Catalog:
    parts = list(parts_of(catalog))
    return catalog_of(ref_of(catalog, parts), parts)


def test_given_a_catalog_from_a_snapshot_when_a_frontend_reads_all_then_it_has_the_same() -> None:
    catalog = odd_catalog()

    mirror = mirror_of(packed(catalog))

    assert mirror == mirror_of(catalog)
    assert sorted(mirror.tables) == [1024, 1025, 1026, 1029]
    assert sorted(name for *_, name in mirror.names) == ["full", "t0"]


def test_given_tables_then_their_json_from_both_forms_says_the_same() -> None:
    items = list(packed(odd_catalog()).tables.raw_items())

    assert len(items) == 5
    for item in items:
        assert not isinstance(item, CatalogTable)
        table = odd_catalog().tables[item["info"]["table_id"]]
        for state in (PUBLIC, ElementState.WRITE_ONLY):
            expected = orjson.loads(feed_table(table, state).model_dump_json())
            assert orjson.loads(feed_json(item, state)) == expected


def test_given_a_table_written_before_a_field_existed_when_told_then_it_has_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog = odd_catalog()
    parts = list(parts_of(catalog))
    mirror = mirror_of(catalog_of(ref_of(catalog, parts), parts))
    monkeypatch.setattr("metasrv.service.state.feed_tables.COLUMN", ("id", "not there"))

    assert mirror_of(catalog_of(ref_of(catalog, parts), parts)) == mirror
