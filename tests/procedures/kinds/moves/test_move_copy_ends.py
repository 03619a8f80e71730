"""A move that cannot go on ends: its table is dropped, or its source has to stay after all."""

from dataclasses import replace

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from metasrv_base.errors import Unavailable
from procedures.context import Context
from procedures.kinds.copies.add_copy import ADD_COPY
from procedures.kinds.copies.remove_copy import REMOVE_COPY, RemoveCopy, leave
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.kinds.moves.copy_move import Destination, MoveCopy, addition, removal
from procedures.kinds.moves.drain_node import DRAIN_NODE, DrainNode, DroppedTables
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.kinds.tables.drop_table import DROP_TABLE
from procedures.kinds.tables.truncate_table import TRUNCATE_TABLE
from procedures.machine import Outcome, Step
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.moving import FIRST, SECOND, THIRD, move, with_joining_copies
from tests.procedures.harness.scenarios import TRUNCATE
from tests.procedures.kinds.copies.copy_lives import code_of, regions, roles
from tests.procedures.kinds.failover.runs import start
from tests.procedures.kinds.moves.move_lives import (
    MOVES,
    ended,
    lived,
    nodes_of,
    submitted,
    waits_for,
)
from tests.procedures.kinds.runs import drop, finish

ONLY_COPY = move(THIRD, "dn-1", "dn-2")
LEADER = move(FIRST, "dn-1", "dn-3")


def step_of(cluster: Cluster, procedure: str) -> str:
    entry = cluster.leader.manager.entry(procedure)
    assert entry is not None, "it is over"
    return entry.held.record.step


async def gone_back(cluster: Cluster) -> str:
    """A move of an only copy past its point of no return, whose destination led and has died: the
    source leads again, and the move is to switch the leader once more."""
    destination = cluster.plane.nodes["dn-2"]

    def refuse_to_be_left_alone() -> None:
        node, order = cluster.plane.told[-1]
        if (node, order.op) == ("dn-2", "hand-over") and THIRD in destination.serving:
            destination.refuses["open"] = Unavailable("not-ready")

    cluster.plane.watch = refuse_to_be_left_alone
    procedure = await submitted(cluster, ONLY_COPY)
    while step_of(cluster, procedure) != "remove":
        await cluster.clock.sleep_ms(50)
    cluster.plane.watch = lambda: None
    destination.die()
    await cluster.detected()
    await start(cluster, FAILOVER_NODE.name, FailoverNode(node="dn-2", reason="no heartbeat"))
    while step_of(cluster, procedure) != "switch":
        await cluster.clock.sleep_ms(1_000)
    await cluster.clock.sleep_ms(60_000)
    assert step_of(cluster, procedure) == "switch"
    assert nodes_of(cluster, 2) == ["dn-1", "dn-2"]
    return procedure


async def removed(cluster: Cluster, state: MoveCopy, node: str, *, gone: bool = False) -> None:
    """Has the copy of another *node* removed, as by the keeper of copies, or with its node."""
    region = next(each for each in regions(cluster) if each["region_id"] == state.region_id)
    root = next(copy["root"] for copy in region["copies"] if copy["node"] == node)
    by_hand = {"node": node, "root": root, "forced": True, "replaced_by": None, "gone": gone}
    change = removal(state).model_copy(update=by_hand)
    assert code_of(await finish(cluster, REMOVE_COPY.name, change, {})) is None


def stayed(end: ProcedureHistory) -> bool:
    """Whether the move has succeeded, and says that the source stays."""
    assert end.result is not None
    return end.outcome is ProcedureOutcome.SUCCEEDED and not end.result["moved"]


def test_given_an_only_copy_that_leads_again_when_the_new_one_is_lost_then_the_move_is_over() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        procedure = await gone_back(cluster)

        await removed(cluster, ONLY_COPY, "dn-2", gone=True)

        assert stayed(await ended(cluster, procedure))
        assert nodes_of(cluster, 2) == ["dn-1"]
        again = await ended(cluster, await submitted(cluster, move(THIRD, "dn-1", "dn-3")))
        assert (code_of(again), nodes_of(cluster, 2)) == (None, ["dn-3"])

    lived(main, with_joining_copies)


def test_given_an_only_copy_that_leads_again_when_the_new_one_is_back_then_it_leads() -> None:
    async def main(cluster: Cluster) -> None:
        procedure = await gone_back(cluster)

        destination = cluster.plane.nodes["dn-2"]
        destination.refuses.clear()
        destination.alive = True

        end = await ended(cluster, procedure)
        assert end.result is not None
        assert (code_of(end), end.result["moved"]) == (None, True)
        assert nodes_of(cluster, 2) == ["dn-2"]

    lived(main, with_joining_copies)


def test_given_an_only_copy_that_leads_again_when_the_table_is_dropped_then_the_move_is_over() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        procedure = await gone_back(cluster)

        assert code_of(await finish(cluster, DROP_TABLE.name, drop(), {})) is None

        assert stayed(await ended(cluster, procedure))

    lived(main, with_joining_copies)


FROM_REMOVE = replace(
    MOVE_COPY,
    steps={name: MOVE_COPY.steps[name] for name in ("remove", "switch", "settle")},
    no_return="remove",
)
"""The kind as it goes on where the source leads again, past the point of no return."""


def test_given_another_that_leads_when_the_new_copy_is_removed_then_the_source_stays() -> None:
    async def main(cluster: Cluster) -> None:
        assert code_of(await finish(cluster, ADD_COPY.name, addition(LEADER), {})) is None
        learner = next(c["root"] for c in regions(cluster)[0]["copies"] if c["node"] == "dn-3")
        added = {"destination": Destination.ABSENT, "to_root": learner, "least": 2}
        state = LEADER.model_copy(update=added)
        procedure = await submitted(cluster, state)
        holder = "dn-1: the copy in its place is not in sync"
        while await waits_for(cluster, procedure, "copy") != holder:
            await cluster.clock.sleep_ms(100)
        assert step_of(cluster, procedure) == "settle"

        await removed(cluster, state, "dn-3")

        assert stayed(await ended(cluster, procedure))
        assert nodes_of(cluster, 0) == ["dn-2", "dn-1"]

    lived(main, kinds={MOVES: FROM_REMOVE})


def test_given_a_new_leader_that_does_not_serve_when_a_third_copy_goes_then_the_source_stays() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        assert code_of(await finish(cluster, ADD_COPY.name, addition(LEADER), {})) is None
        while roles(cluster, 0) != [("dn-2", "in-sync"), ("dn-3", "in-sync")]:
            await cluster.clock.sleep_ms(1_000)
        cluster.plane.nodes["dn-3"].refuses["lead"] = Unavailable("not-ready")
        state = LEADER.model_copy(update={"destination": Destination.MEMBER, "to_root": "any"})
        procedure = await submitted(cluster, state)
        await waits_for(cluster, procedure, "copy")
        assert step_of(cluster, procedure) == "settle"

        await removed(cluster, state, "dn-2")

        assert stayed(await ended(cluster, procedure))
        assert nodes_of(cluster, 0) == ["dn-3", "dn-1"]

    lived(main, with_joining_copies, kinds={MOVES: FROM_REMOVE})


def test_given_a_learner_that_is_waited_for_when_the_table_is_dropped_then_the_move_is_undone() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        procedure = await submitted(cluster, move(FIRST, "dn-2", "dn-3"))
        await waits_for(cluster, procedure, "copy")

        assert code_of(await finish(cluster, DROP_TABLE.name, drop(), {})) is None
        before_ms = cluster.clock.wall_ms()
        end = await ended(cluster, procedure)

        assert (end.outcome, code_of(end)) == (ProcedureOutcome.ROLLED_BACK, "table-not-found")
        assert cluster.clock.wall_ms() - before_ms < 1_000

    lived(main)


def test_given_a_drain_that_waits_for_a_learner_when_the_table_is_dropped_then_it_goes_on() -> None:
    """The region moves as one of a dropped table, and the learner is made anew."""

    async def main(cluster: Cluster) -> None:
        state = DrainNode(node="dn-2", reason="test", dropped=DroppedTables.MOVE)
        procedure = await start(cluster, DRAIN_NODE.name, state)
        while nodes_of(cluster, 0) != ["dn-1", "dn-2", "dn-3"]:
            await cluster.clock.sleep_ms(1_000)
        cluster.plane.joining |= {FIRST, SECOND}

        assert code_of(await finish(cluster, DROP_TABLE.name, drop(), {})) is None
        before_ms = cluster.clock.wall_ms()
        end = await ended(cluster, procedure)

        assert end.result is not None
        assert (end.result["left"], end.result.get("dropped")) == ([], None)
        assert cluster.clock.wall_ms() - before_ms < 60_000

    lived(main)


@pytest.mark.parametrize("source", ["dn-1", "dn-2"])
@pytest.mark.parametrize("step", ["join", "switch"])
def test_given_a_truncate_while_a_copy_moves_then_the_copy_in_its_new_root_leaves(
    source: str, step: str
) -> None:
    async def main(cluster: Cluster) -> None:
        leader = cluster.plane.nodes["dn-1"]
        leader.refuses["hand-over"] = Unavailable("not-ready")
        procedure = await submitted(cluster, move(FIRST, source, "dn-3"))
        if step == "join":
            await waits_for(cluster, procedure, "copy")
        else:
            cluster.plane.joining.add(FIRST)
            await cluster.clock.sleep_ms(10_000)
        assert code_of(await finish(cluster, TRUNCATE_TABLE.name, TRUNCATE, {})) is None
        cluster.plane.joining.add(FIRST)
        leader.refuses.clear()

        end = await ended(cluster, procedure)

        assert end.result is not None
        assert end.result["moved"]
        assert sorted(nodes_of(cluster, 0)) == sorted({"dn-1", "dn-2", "dn-3"} - {source})
        assert not cluster.plane.violations

    lived(main)


def test_given_a_truncate_just_before_the_source_goes_then_it_is_removed_from_its_new_root() -> (
    None
):
    truncated = 0

    async def main(cluster: Cluster) -> None:
        async def leave_late(state: RemoveCopy, context: Context) -> Outcome[RemoveCopy]:
            nonlocal truncated
            if not truncated:
                truncated += 1
                assert code_of(await finish(cluster, TRUNCATE_TABLE.name, TRUNCATE, {})) is None
            return await leave(state, context)

        late["leave"] = replace(REMOVE_COPY.steps["leave"], act=leave_late)
        end = await ended(cluster, await submitted(cluster, move(FIRST, "dn-2", "dn-3")))

        assert end.result is not None
        assert end.result["moved"]
        assert nodes_of(cluster, 0) == ["dn-1", "dn-3"]

    late: dict[str, Step[RemoveCopy]] = dict(REMOVE_COPY.steps)
    unlocked = replace(REMOVE_COPY, steps=late, locks=lambda state: ())
    lived(main, with_joining_copies, {REMOVE_COPY.name: unlocked})
