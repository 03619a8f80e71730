"""Tables of a snapshot: decoded one by one, kept within bounds, and copied as they are stored."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import catalog_of, items_of, parts_of
from keys.catalog.tables import packed_tables
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import head_in
from keys.catalog.tables.opened_part import OpenedPart
from keys.model.log import RouteChanged, TableAltered, TableCreated
from keys.model.snapshot.snapshots import SnapshotPart, sealed
from keys.packed import deflated
from keys.value import NewerFormat
from metasrv_base.errors import Corrupt
from tests.keys.catalog.logs import first_update, update
from tests.keys.catalog.snapshots import plain, ref_of
from tests.procedures.harness.tables import table_info, table_route

COUNT = 300


def live(count: int = COUNT) -> Catalog:
    catalog = Catalog().apply(first_update(), 1)
    for number in range(count):
        info = table_info(1024 + number, f"t{number:05}", 2)
        made = TableCreated(info=info, route=table_route(info.table_id, ("dn-1", "dn-2")))
        catalog = catalog.apply(update(number + 2, made), number + 2)
    return catalog


def loaded(catalog: Catalog) -> Catalog:
    parts = list(parts_of(catalog))
    return catalog_of(ref_of(catalog, parts), parts)


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offset of each table that is decoded."""
    offsets: list[int] = []
    sound = OpenedPart.table

    def counted(part: OpenedPart, offset: int) -> CatalogTable:
        offsets.append(offset)
        return sound(part, offset)

    monkeypatch.setattr(OpenedPart, "table", counted)
    return offsets


def test_given_a_snapshot_when_loaded_and_asked_then_only_the_tables_asked_for_are_decoded(
    decodings: list[int],
) -> None:
    catalog = loaded(live())

    assert len(catalog.tables) == COUNT
    assert catalog.led_by("dn-1") == COUNT
    assert decodings == []

    table = catalog.table("main", "public", "t00007")
    assert catalog.tables[1031] is table
    moved = table.route.region_routes[0].model_copy(update={"epoch": 2})
    catalog.apply(
        update(catalog.version + 1, RouteChanged(table_id=1031, version=2, regions=(moved,))), 9
    )
    assert len(decodings) == 1


def test_given_bounds_when_all_tables_are_read_in_turn_then_no_more_is_kept(
    monkeypatch: pytest.MonkeyPatch, decodings: list[int]
) -> None:
    monkeypatch.setattr(packed_tables, "DECODED_BYTES_MAX", 10_000)
    catalog = loaded(live())

    for _ in range(2):
        assert [catalog.tables[1024 + n].info.name for n in range(COUNT)] == [
            f"t{n:05}" for n in range(COUNT)
        ]
    assert len(decodings) == 2 * COUNT

    assert catalog.tables[1023 + COUNT] is catalog.tables[1023 + COUNT]
    assert len(decodings) == 2 * COUNT


def test_given_a_loaded_catalog_when_saved_again_then_its_tables_are_copied_and_not_decoded(
    decodings: list[int],
) -> None:
    catalog = loaded(live())
    other = table_info(9_000, "t00100_", 1)
    made = TableCreated(info=other, route=table_route(9_000, ("dn-1",)))
    catalog = catalog.apply(update(catalog.version + 1, made), 99)

    again = loaded(catalog)

    assert decodings == []
    assert plain(again) == plain(catalog)


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_given_a_snapshot_of_before_that_cut_a_tables_history_when_loaded_then_it_is_whole(
    cut: int,
) -> None:
    """*cut*: items of the table in the first part; from here on none is cut."""
    catalog = live(2)
    for version in (4, 5):
        info = catalog.tables[1024].info
        columns = info.columns[0], info.columns[1].model_copy(update={"name": f"c{version}"})
        entry = TableAltered(info=info.model_copy(update={"columns": columns}))
        catalog = catalog.apply(update(version, entry), version)
    texts = [item.model_dump_json().encode() for item in items_of(catalog)]
    first = next(n for n, text in enumerate(texts) if b'"earlier_columns"' in text) + cut
    parts = [
        sealed(catalog.version, number, some)
        for number, some in enumerate((texts[:first], texts[first:]))
    ]

    again = catalog_of(ref_of(catalog, parts), parts)

    assert plain(again) == plain(catalog)
    assert len(again.tables[1024].schema_versions) == 3
    assert plain(loaded(again)) == plain(catalog)


def test_given_texts_like_the_beginning_of_an_item_when_loaded_then_items_are_found() -> None:
    info = table_info(1024, "a", 1)
    text = 'x,{"what":"table",'
    column = info.columns[1].model_copy(update={"default": text, "origin_default": text})
    options = {"a": text, "what": "table"}
    odd = info.model_copy(update={"columns": (info.columns[0], column), "options": options})
    catalog = Catalog().apply(first_update(), 1)
    made = [TableCreated(info=each, route=table_route(each.table_id, ("dn-1",))) for each in (odd,)]
    made.append(TableCreated(info=table_info(1025, "b", 1), route=table_route(1025, ("dn-1",))))
    catalog = catalog.apply(update(2, *made), 2)

    assert plain(loaded(catalog)) == plain(catalog)


def test_given_the_models_inside_an_item_then_none_begins_as_an_item_does() -> None:
    inside = [kind for kind in _models(SnapshotPart) if "what" not in kind.model_fields]
    items = [kind for kind in _models(SnapshotPart) if "what" in kind.model_fields]

    assert all(next(iter(kind.model_fields)) == "what" for kind in items)
    assert sorted(kind.__name__ for kind in items) == [
        "CatalogItem",
        "EarlierColumnsItem",
        "PlacementItem",
        "SchemaItem",
        "TableItem",
        "TablespaceItem",
    ]
    assert len(inside) > 8


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from _models(field.annotation)
    for each in get_args(kind):
        yield from _models(each)


def test_given_tables_when_their_heads_are_read_from_json_then_they_are_as_of_the_models() -> None:
    catalog = live(20)
    (raw,) = parts_of(catalog)
    part = OpenedPart.of("part", raw)

    heads = [head_in(item) for _, item in part.items(catalog.version, 0) if item["what"] == "table"]

    assert heads == [table.head for table in part.tables()]
    assert heads == [head_in(item) for item in part.raw_tables()]
    assert sorted(heads) == sorted(table.head for table in catalog.tables.values())


@pytest.mark.parametrize(
    "place", [b'{"format":1,"version"', b'"info":{"format":1', b'"route":{"format":1']
)
def test_given_a_newer_format_anywhere_when_loaded_then_refused_as_newer(place: bytes) -> None:
    catalog = live(1)
    (raw,) = parts_of(catalog)
    newer = deflated(SnapshotPart.unpack(raw).replace(place, place.replace(b":1", b":99", 1)))

    with pytest.raises(NewerFormat):
        catalog_of(ref_of(catalog, [newer]), [newer])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"leader":"dn-1"', b'"leader":7'),
        (b'"state":"open"', b'"state":"shut"'),
        (b'"table_id":1024', b'"table_id":"1024"'),
        (b'"region_routes":', b'"regions":'),
        (b'"what":"table"', b'"what":"tablet"'),
        (b'"items":[', b'"things":['),
        (b"]}", b"]"),
        (b'"version":2,"part":0', b'"version":2,"part":1'),
    ],
)
def test_given_a_part_that_the_models_did_not_write_when_loaded_then_corrupt(
    before: bytes, after: bytes
) -> None:
    catalog = live(1)
    (raw,) = parts_of(catalog)
    text = SnapshotPart.unpack(raw)
    assert before in text
    wrong = deflated(text.replace(before, after))

    with pytest.raises(Corrupt):
        dict(catalog_of(ref_of(catalog, [wrong]), [wrong]).tables.items())


def test_given_locations_then_part_offset_and_version_are_apart() -> None:
    highest = (1 << packed_tables.PART_BITS) - 1, (1 << packed_tables.OFFSET_BITS) - 1

    location = packed_tables.location_of(*highest, 5)

    assert location >> packed_tables.PART_BITS + packed_tables.OFFSET_BITS == 5
