"""Statements through a frontend while a column changes its type, against a region's own code."""

import asyncio

import pytest

from dataplane.frontend.planning.row_input import Op
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Refused
from tests.dataplane.frontend.bench import running
from tests.dataplane.frontend.statements.calls import all_rows, row, write
from tests.dataplane.frontend.tables import B, column, feed_table

WRITE_ONLY = ElementState.WRITE_ONLY
OLD, NEW = column(2, "a", "int32"), column(4, "a", "int64", replaces=2)
HIDDEN = OLD.model_copy(update={"state": WRITE_ONLY})
COMING = NEW.model_copy(update={"state": WRITE_ONLY})
ALONE = NEW.model_copy(update={"replaces": None})
BEFORE = feed_table(OLD, B)
CHECKS = feed_table(OLD, COMING, B, schema_version=2)
CHANGED = feed_table(HIDDEN, NEW, B, schema_version=3)
AFTER = feed_table(ALONE, B, schema_version=4)
LARGE = 2**40


async def test_given_a_value_only_the_new_type_holds_when_old_readers_are_left_then_it_waits() -> (
    None
):
    async with running(BEFORE) as bench:
        await write(bench, Op.INSERT, [{"id": 1, "a": 1, "b": "x"}])
        await bench.publish(CHECKS)
        await bench.publish(CHANGED)

        small = await write(bench, Op.UPDATE, [{"id": 1, "a": 2}])
        async with asyncio.TaskGroup() as group:
            waits = group.create_task(write(bench, Op.UPSERT, [{"id": 2, "a": LARGE, "b": "y"}]))
            other = await write(bench, Op.UPDATE, [{"id": 1, "b": "z"}])
            is_done = waits.done()
            await bench.publish(AFTER)

        assert (small, other, is_done, waits.result()) == (3, 3, False, 4)
        assert await all_rows(bench) == [
            {"id": 1, "a": 2, "b": "z"},
            {"id": 2, "a": LARGE, "b": "y"},
        ]


async def test_given_rows_of_before_when_their_type_changes_then_each_reads_its_own() -> None:
    old, new = column(2, "a", "string"), column(4, "a", "int64", replaces=2)
    coming, hidden = (one.model_copy(update={"state": WRITE_ONLY}) for one in (new, old))
    async with running(feed_table(old, B)) as bench:
        await write(bench, Op.INSERT, [{"id": id, "a": str(id), "b": "x"} for id in (1, 2, 3)])
        await bench.publish(feed_table(old, coming, B, schema_version=2))
        await write(bench, Op.UPDATE, [{"id": 2, "b": "y"}])
        before = await all_rows(bench)
        await bench.publish(feed_table(hidden, new, B, schema_version=3))
        await write(bench, Op.UPDATE, [{"id": 3, "b": "z"}])

        after = await all_rows(bench)

        assert [one["a"] for one in before] == ["1", "2", "3"]
        assert [(one["a"], one["b"]) for one in after] == [(1, "x"), (2, "y"), (3, "z")]


@pytest.mark.case("online 51")
async def test_given_a_type_that_comes_when_a_value_does_not_fit_it_then_refused_and_named() -> (
    None
):
    narrow = column(4, "a", "int8", replaces=2, state=WRITE_ONLY)
    async with running(BEFORE) as bench:
        await write(bench, Op.INSERT, [{"id": 1, "a": 1000, "b": "x"}])
        await bench.publish(feed_table(OLD, narrow, B, schema_version=2))

        with pytest.raises(Refused) as refused:
            await write(bench, Op.UPSERT, [{"id": 2, "a": 1}, {"id": 3, "a": 1000}])
        await write(bench, Op.UPDATE, [{"id": 1, "b": "y"}])

        assert refused.value.code == "constraint-violated"
        assert refused.value.facts["pointer"] == "/rows/1/a"
        assert str(refused.value.facts["name"]).startswith("int8")
        assert await row(bench, 1) == [{"id": 1, "a": 1000, "b": "y"}], "its own value stays"
