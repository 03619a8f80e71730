"""Drops with a grace time: hidden, maintained, and back at once until it is over."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from keys.model.records import ClientRequirements, ProcedureOutcome
from keys.model.tables import TableInfo
from keys.store.kv import Compare
from metasrv_base.errors import Conflict
from procedures.engine.control import Control
from procedures.engine.submit import SubmitRequest
from procedures.kinds.alter.alter_operations import DropColumnOperation
from procedures.kinds.alter.alter_table import ALTER_TABLE, AlterTable
from procedures.kinds.alter.constraint_operations import AddCheck
from procedures.kinds.alter.index_kinds import DROP_INDEX
from procedures.machine import Kind
from tests.fakes.cluster import Cluster
from tests.procedures.harness.ends import TABLE, Check
from tests.procedures.harness.online import (
    ALTERS,
    UNINDEXES,
    index_gone,
    never_altered,
    still_indexed,
    with_index,
    with_rows,
    with_wide_table,
)
from tests.procedures.kinds.alter.online import Change
from tests.sim.loop import SimLoop, run

GRACE_MS = 20_000
KEPT = {"grace_ms": GRACE_MS}
INDEX = UNINDEXES.model_copy(update=KEPT)
COLUMN = ALTERS.model_copy(update={**KEPT, "operations": (DropColumnOperation(name="size"),)})


def dropping(
    kind: Kind[AlterTable],
    state: AlterTable,
    given: Callable[[Cluster, Compare], Awaitable[None]],
    scenario: Callable[[Change], Awaitable[None]],
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await given(cluster, fence)
        await cluster.started()
        at = Change(cluster, fence, cluster.ids.procedure_id())
        client = ClientRequirements(
            submitted_by="anna", request_id="r", statement={}, idempotency=None
        )
        await cluster.leader.manager.submit(kind, state, SubmitRequest(at.procedure, client, "b"))
        await at.settle()
        await scenario(at)

    run(main, 1)


def hidden(info: TableInfo) -> Sequence[str]:
    """States of what is not public."""
    states = [*(one.state for one in info.columns), *(one.state for one in info.indexes)]
    return [state.value for state in states if state != "public"]


@pytest.mark.parametrize(
    ("kind", "state", "given", "check"),
    [
        (DROP_INDEX, INDEX, with_index, still_indexed),
        (ALTER_TABLE, COLUMN, with_wide_table, never_altered),
    ],
    ids=["index", "column"],
)
@pytest.mark.case("online 67")
def test_given_its_grace_time_when_it_is_cancelled_then_what_was_dropped_is_public_again(
    kind: Kind[AlterTable],
    state: AlterTable,
    given: Callable[[Cluster, Compare], Awaitable[None]],
    check: Check,
) -> None:
    async def scenario(at: Change) -> None:
        await at.cluster.clock.sleep_ms(GRACE_MS // 2)
        seen = await at.info()
        (wait,) = at.entry().live.waits

        await at.control(Control.CANCEL)

        assert (await at.end()).outcome is ProcedureOutcome.CANCELLED
        assert hidden(seen) == ["write-only"]
        assert (wait.kind, wait.expires_in_ms) == ("grace", GRACE_MS)
        assert at.judge(ProcedureOutcome.CANCELLED, check) == []

    dropping(kind, state, given, scenario)


def test_given_a_grace_time_that_is_over_then_it_is_gone_and_cannot_be_undropped() -> None:
    async def scenario(at: Change) -> None:
        seen = hidden(await at.info())
        ended = await at.end()

        with pytest.raises(Conflict):
            await at.control(Control.CANCEL)
        assert (seen, ended.outcome) == (["write-only"], ProcedureOutcome.SUCCEEDED)
        assert ended.finished_at_ms - ended.last.submitted_at_ms >= GRACE_MS
        assert at.judge(ProcedureOutcome.SUCCEEDED, index_gone) == []

    dropping(DROP_INDEX, INDEX, with_index, scenario)


def test_given_a_leader_that_dies_in_the_grace_time_then_the_next_waits_for_the_rest() -> None:
    async def scenario(at: Change) -> None:
        await at.cluster.clock.sleep_ms(GRACE_MS // 2)
        at.cluster.loop.kill(at.cluster.leader.node)
        await at.cluster.started("meta-2")
        await at.settle()
        seen = hidden(await at.info())

        ended = await at.end()

        took_ms = ended.finished_at_ms - ended.last.submitted_at_ms
        assert seen == ["write-only"]
        assert GRACE_MS <= took_ms < GRACE_MS + GRACE_MS // 2
        assert at.judge(ProcedureOutcome.SUCCEEDED, index_gone) == []

    dropping(DROP_INDEX, INDEX, with_index, scenario)


def test_given_a_check_that_comes_with_a_drop_then_all_wait_for_the_grace_time() -> None:
    both = (AddCheck(name="c", expression="id > 0"), DropColumnOperation(name="note"))
    state = COLUMN.model_copy(update={"operations": both})

    async def scenario(at: Change) -> None:
        await at.cluster.clock.sleep_ms(GRACE_MS // 2)
        seen = await at.info()
        await at.control(Control.CANCEL)

        assert (await at.end()).outcome is ProcedureOutcome.CANCELLED
        assert [one.state for one in seen.constraints] == ["write-only"]
        assert (await at.info(TABLE)).constraints == ()
        assert at.judge(ProcedureOutcome.CANCELLED, never_altered) == []

    dropping(ALTER_TABLE, state, with_rows, scenario)
