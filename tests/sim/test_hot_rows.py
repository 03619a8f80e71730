"""Rows that are written again in every round of a reorg: each region is read once all the same.

Whoever writes a row keeps its entries since the index is write-only, and what a job made of it
loses to what is newer. So nothing is read again because somebody wrote.
"""

from collections.abc import Mapping

import pytest

from dataplane.region.engine.file_ingest import FileIngest, Prepared
from dataplane.region.manifests.adoption import Ingest
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict
from procedures.steps.reorg_steps import REFUSALS_MAX
from tests.sim.cluster.hot_rows import REGIONS, ROWS, HotTable, hot

ALL = REGIONS * ROWS
INDEXES: Mapping[str, Mapping[str, object]] = {
    "plain": {"name": "by_code", "columns": ["code"]},
    "unique": {"name": "by_code", "columns": ["part", "code"], "unique": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.case("online 30")
def test_given_a_hot_row_in_each_region_when_an_index_is_filled_then_each_is_read_once(
    kind: str,
) -> None:
    async def scenario(table: HotTable) -> None:
        done = await table.change("indexes", INDEXES[kind])

        assert done.result is not None, done.error
        counts = {name: done.result[name] for name in ("rounds", "rows", "entries")}
        assert counts == {"rounds": REGIONS, "rows": ALL, "entries": ALL}
        assert sorted(table.read) == list(range(REGIONS))
        assert min(table.times) >= 4
        assert table.refused == []
        assert [one.state for one in table.info.indexes] == [ElementState.PUBLIC]
        assert list(table.faults()) == []

    hot(scenario)


@pytest.mark.case("online 30")
def test_given_a_hot_row_in_each_region_when_a_type_changes_then_each_is_read_once() -> None:
    operation = {"op": "alter_type", "name": "size", "type": "int32"}

    async def scenario(table: HotTable) -> None:
        done = await table.change("alter", {"operations": [operation]})

        assert done.state == "succeeded", done.error
        assert sorted(table.read) == list(range(REGIONS))
        assert min(table.times) >= 4
        found = {(row["part"], row["id"]): row["size"] for row in await table.rows()}
        last = {(part, 0): {times, times + 1} for part, times in enumerate(table.times)}
        assert len(found) == ALL
        assert all(size in last.get(key, {0}) for key, size in found.items()), found

    hot(scenario)


@pytest.mark.slow
@pytest.mark.case("online 30")
def test_given_a_region_that_takes_nothing_while_it_is_written_then_the_others_go_on_and_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No region is like that: it is planted."""
    taken: list[int] = []

    def ingest(part: FileIngest, source: Ingest, prepared: Prepared | None = None) -> bool:
        manifest = part._manifest.value
        if part._content.version > manifest.marks[0].version:
            raise Conflict("version-mismatch", reason="a row was written since")
        taken.append(manifest.spec.region_id & 0xFF)
        return True

    async def scenario(table: HotTable) -> None:
        table.hot = (0,)
        done = await table.change("indexes", INDEXES["plain"])

        assert (done.state, done.error and done.error.code) == ("rolled_back", "version-mismatch")
        assert sorted(taken) == [1, 2]
        assert table.read.count(0) <= REFUSALS_MAX + REGIONS
        assert table.info.indexes == ()

    monkeypatch.setattr(FileIngest, "ingest", ingest)
    hot(scenario)
