"""A descriptor tells a table's columns, and which names it does not have."""

import pytest

from keys.catalog.catalog import Catalog
from keys.catalog.descriptor import TableDescriptor
from keys.model.log import TableCreated
from keys.model.tables import Column, Index
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Corrupt
from metasrv_base.schema.partition import HashRule
from tests.keys.catalog.logs import first_update, update
from tests.procedures.harness.tables import table_info, table_route

COLUMNS = (
    Column(id=1, name="coming", type="int64", nullable=True, state=ElementState.DELETE_ONLY),
    Column(id=2, name="region", type="string", nullable=False),
    Column(id=3, name="id", type="int64", nullable=False),
    Column(id=4, name="note", type="string", nullable=True),
)


def catalog(**more: object) -> Catalog:
    index = Index(id=1, name="by_note", columns=(4,), unique=False, state=ElementState.WRITE_ONLY)
    fields = {
        "columns": COLUMNS,
        "primary_key": (3, 2),
        "partition": HashRule(columns=(2,), count=1),
        "indexes": (index,),
        **more,
    }
    info = table_info(1024, "t", 1).model_copy(update=fields)
    made = TableCreated(info=info, route=table_route(1024, ("dn-1",)))
    return Catalog().apply(first_update(), 1).apply(update(2, made), 2)


def test_given_a_descriptor_then_it_tells_ids_versions_key_and_states() -> None:
    told = TableDescriptor.of(catalog(), catalog().tables[1024])

    assert (told.schema_id, told.table_id, told.version) == (1, 1024, 1)
    assert told.primary_key == ("id", "region")
    assert told.states["column coming"] is ElementState.DELETE_ONLY
    assert told.states["index by_note"] is ElementState.WRITE_ONLY
    assert [each.catalog_version for each in told.schema_versions] == [2]


@pytest.mark.parametrize(
    ("name", "index", "is_of_key", "is_colocated"),
    [
        ("region", 0, True, True),
        ("id", 1, True, False),
        ("note", 2, False, False),
        ("coming", -1, False, False),
        ("none", -1, False, False),
        ("ID", -1, False, False),
        ("", -1, False, False),
    ],
)
def test_given_a_name_then_its_column_is_told_or_that_there_is_none(
    name: str, index: int, is_of_key: bool, is_colocated: bool
) -> None:
    told = TableDescriptor.of(catalog(), catalog().tables[1024])
    column = told.column(name)

    assert (None if column is None else column.name) == (None if index < 0 else name)
    assert told.column_index(name) == index
    assert told.is_primary_key_column(name) is is_of_key
    assert told.is_colocation_column(name) is is_colocated


def test_given_colocation_columns_then_they_are_told_and_not_those_of_the_partition() -> None:
    placed = catalog(format=2, colocation=(3, 2))
    told = TableDescriptor.of(placed, placed.tables[1024])

    assert [name for name in ("region", "id", "note") if told.is_colocation_column(name)] == [
        "region",
        "id",
    ]


def test_given_a_table_of_another_catalog_then_corrupt() -> None:
    with pytest.raises(Corrupt):
        TableDescriptor.of(Catalog(), catalog().tables[1024])
