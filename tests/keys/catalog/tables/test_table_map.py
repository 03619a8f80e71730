"""The map of tables against a dict, through any changes and with any packs below it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.tables.heads import TableHead
from keys.catalog.tables.table_map import TableMap, TablePack


@dataclass(frozen=True)
class Sample:
    """A table that has no more than its head."""

    table_id: int
    catalog_version: int

    @property
    def head(self) -> TableHead:
        schema, name = ("main", "public"), f"t{self.table_id}"
        return TableHead(self.table_id, schema, name, False, False, self.catalog_version, {}, ())


class Pack(TablePack[Sample]):
    def __init__(self, tables: dict[int, Sample]) -> None:
        self.tables = tables
        self.made = 0
        """Tables that were asked for."""

    def __contains__(self, table_id: object) -> bool:
        return table_id in self.tables

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tables)

    def get(self, table_id: int) -> Sample:
        self.made += 1
        return self.tables[table_id]

    def version_of(self, table_id: int) -> int:
        return self.tables[table_id].catalog_version

    def json_of(self, table_id: int) -> bytes:
        return b"%d" % self.tables[table_id].catalog_version

    def items(self) -> Iterator[tuple[int, Sample]]:
        self.made += len(self.tables)
        return iter(self.tables.items())

    def heads(self) -> Iterator[TableHead]:
        return (table.head for table in self.tables.values())


IDS = st.integers(0, 9)
SAMPLES = st.dictionaries(IDS, st.integers(1, 5)).map(
    lambda versions: {number: Sample(number, version) for number, version in versions.items()}
)
CHANGES = st.lists(st.tuples(st.sampled_from(["set", "delete", "taken"]), IDS, st.integers(6, 9)))


@given(SAMPLES, SAMPLES, CHANGES)
def test_given_any_changes_then_a_map_is_as_a_dict_and_the_maps_before_stay(
    loaded: dict[int, Sample], others: dict[int, Sample], changes: list[tuple[str, int, int]]
) -> None:
    other = TableMap(Pack(others))
    states = [(TableMap(Pack(loaded)), loaded)]
    for what, table_id, version in changes:
        tables, model = states[-1][0], dict(states[-1][1])
        match what:
            case "set":
                model[table_id] = Sample(table_id, version)
                tables = tables.set(table_id, model[table_id])
            case "delete" if table_id in model:
                del model[table_id]
                tables = tables.delete(table_id)
            case "taken" if table_id in others:
                model[table_id] = others[table_id]
                tables = tables.taken(other, table_id)
        states.append((tables, model))

    for tables, model in states:
        must_be(tables, model)


def must_be(tables: TableMap[Sample], model: dict[int, Sample]) -> None:
    assert len(tables) == len(model)
    assert bool(tables) == bool(model)
    assert sorted(tables) == sorted(model)
    assert dict(tables.items()) == model == {table.table_id: table for table in tables.values()}
    assert sorted(tables.heads()) == sorted(table.head for table in model.values())
    for table_id in range(10):
        table = model.get(table_id)
        assert (table_id in tables) == (table is not None)
        assert tables.get(table_id) == table
        assert tables.version_of(table_id) == (table and table.catalog_version)
        if table is not None:
            assert tables.json_of(table_id) in (None, b"%d" % table.catalog_version)
    same = TableMap[Sample]()
    for table_id, table in model.items():
        same = same.set(table_id, table)
    assert tables == same
    assert (tables == TableMap()) == (not model)


def test_given_a_table_that_is_not_there_when_read_or_deleted_then_it_says_so() -> None:
    tables = TableMap(Pack({1: Sample(1, 1)})).delete(1)

    with pytest.raises(KeyError):
        tables[1]
    with pytest.raises(KeyError):
        tables.delete(1)
    with pytest.raises(KeyError):
        tables.delete(2)


def test_given_packs_when_ids_heads_versions_and_changes_are_asked_for_then_no_table_is_made() -> (
    None
):
    pack, other = Pack({1: Sample(1, 1), 2: Sample(2, 2)}), Pack({3: Sample(3, 3)})

    tables = TableMap(pack).taken(TableMap(other), 3).set(1, Sample(1, 4)).delete(2)

    assert sorted(tables) == [1, 3]
    assert [tables.version_of(number) for number in (1, 2, 3)] == [4, None, 3]
    assert sorted(head.table_id for head in tables.heads()) == [1, 3]
    assert (pack.made, other.made) == (0, 0)
