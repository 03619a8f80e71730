"""A copy moves: refusals before anything is made, the waits it shows, and what comes between."""

from dataclasses import replace

import pytest

from keys.model.records import ProcedureOutcome
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.node.copy_sessions import FetchBody
from procedures.engine.control import Command, Control
from procedures.kinds.copies.add_copy import ADD_COPY
from procedures.kinds.copies.remove_copy import REMOVE_COPY, RemoveCopy
from procedures.kinds.moves.copy_move import Destination, MoveCopy, addition, removal
from procedures.kinds.moves.move_copy import MOVE_COPY
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.moving import (
    FIRST,
    SECOND,
    THIRD,
    move,
    with_joining_copies,
)
from tests.procedures.kinds.copies.copy_lives import code_of, lives, regions, roles
from tests.procedures.kinds.moves.move_lives import (
    MOVES,
    ended,
    lived,
    nodes_of,
    submitted,
    waits_for,
)
from tests.procedures.kinds.runs import finish

TO_THIRD = move(FIRST, "dn-1", "dn-3")


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (move(FIRST, "dn-2", "dn-2"), "node-not-eligible"),
        (move(FIRST, "dn-2", "dn-9"), "node-not-eligible"),
        (move(FIRST, "dn-2", "dn-1"), "action-not-allowed"),
        (move(SECOND, "dn-3", "dn-9"), "replica-limit"),
        (move(FIRST, "dn-3", "dn-2"), "not-found"),
        (move(str(int(THIRD) + 7), "dn-2", "dn-3"), "not-found"),
        (move(FIRST, "dn-2", "dn-3").model_copy(update={"table_id": 999}), "table-not-found"),
    ],
)
@pytest.mark.case("greptime 119")
def test_given_a_move_that_may_not_be_then_refused_and_nothing_is_made(
    state: MoveCopy, code: str
) -> None:
    (end,), cluster = lives((MOVES, state))

    assert code_of(end) == code
    assert end.outcome in (ProcedureOutcome.FAILED, ProcedureOutcome.ROLLED_BACK)
    assert [nodes_of(cluster, region) for region in range(3)] == [
        ["dn-1", "dn-2"],
        ["dn-1", "dn-2", "dn-3"],
        ["dn-1"],
    ]
    assert len(cluster.plane.storage.folders) == 6


def test_given_a_member_where_one_is_too_many_then_nothing_is_added_and_the_source_goes() -> None:
    """As after a move whose last step was refused."""

    async def main(cluster: Cluster) -> None:
        state = move(FIRST, "dn-2", "dn-3")
        await finish(cluster, ADD_COPY.name, addition(state), {})
        while roles(cluster, 0) != [("dn-2", "in-sync"), ("dn-3", "in-sync")]:
            await cluster.clock.sleep_ms(1_000)

        end = await finish(cluster, MOVES, state, {})

        assert code_of(end) is None
        assert end.last.state["destination"] == "member"
        assert roles(cluster, 0) == [("dn-3", "in-sync")]

    lived(main, with_joining_copies)


def test_given_a_copy_that_does_not_join_then_the_wait_says_so_and_a_cancel_removes_it() -> None:
    async def main(cluster: Cluster) -> None:
        procedure = await submitted(cluster, move(FIRST, "dn-2", "dn-3"))
        assert await waits_for(cluster, procedure, "copy") == "dn-3, which is to be in sync"
        assert nodes_of(cluster, 0) == ["dn-1", "dn-2", "dn-3"]

        await cluster.leader.manager.control(procedure, Command(Control.CANCEL, by="anna"))

        assert (await ended(cluster, procedure)).outcome is ProcedureOutcome.CANCELLED
        assert nodes_of(cluster, 0) == ["dn-1", "dn-2"]

    lived(main)


@pytest.mark.case("greptime 116", "greptime 118")
def test_given_a_destination_that_cannot_make_the_copy_for_now_then_it_is_tried_again() -> None:
    async def main(cluster: Cluster) -> None:
        node = cluster.plane.nodes["dn-3"]
        node.refuses["create"] = Unavailable("not-ready")
        procedure = await submitted(cluster, move(FIRST, "dn-1", "dn-3"))
        await cluster.clock.sleep_ms(10_000)
        region = regions(cluster)[0]
        assert (region["leader"], region["epoch"]) == ("dn-1", 1)
        assert roles(cluster, 0) == [("dn-2", "in-sync"), ("dn-3", "learner")]

        node.refuses.clear()

        assert code_of(await ended(cluster, procedure)) is None
        region = regions(cluster)[0]
        assert (region["leader"], region["epoch"]) == ("dn-3", 2)
        assert roles(cluster, 0) == [("dn-2", "in-sync")]

    lived(main, with_joining_copies)


def test_given_a_copy_that_fetches_files_then_the_move_tells_how_many_bytes_have_arrived() -> None:
    async def main(cluster: Cluster) -> None:
        node = cluster.plane.nodes["dn-3"]
        procedure = await submitted(cluster, move(FIRST, "dn-2", "dn-3"))
        await waits_for(cluster, procedure, "copy")
        shown = []
        for fetch in (FetchBody(bytes=2, bytes_total=8), FetchBody(bytes=6, bytes_total=8), None):
            node.fetches = {} if fetch is None else {FIRST: fetch}
            await cluster.clock.sleep_ms(3_000)
            entry = cluster.leader.manager.entry(procedure)
            assert entry is not None
            live = entry.live
            shown.append((live.phase, live.done, live.total, live.unit))
        node.silent = True
        await cluster.clock.sleep_ms(30_000)
        assert await waits_for(cluster, procedure, "copy"), "a silent node fails no move"
        node.silent = False
        await cluster.leader.manager.control(procedure, Command(Control.CANCEL, by="anna"))
        assert (await ended(cluster, procedure)).outcome is ProcedureOutcome.CANCELLED

        assert shown == [("join", 2, 8, "bytes"), ("join", 6, 8, "bytes"), ("join", 6, 8, "bytes")]

    lived(main)


@pytest.mark.case("greptime 117", "greptime 126")
def test_given_a_copy_that_never_joins_when_its_time_is_over_then_it_is_removed() -> None:
    async def main(cluster: Cluster) -> None:
        end = await finish(cluster, MOVES, move(FIRST, "dn-2", "dn-3"), {})

        assert (end.outcome, code_of(end)) == (ProcedureOutcome.ROLLED_BACK, "deadline-exceeded")
        assert nodes_of(cluster, 0) == ["dn-1", "dn-2"]

    lived(main, kinds={MOVES: replace(MOVE_COPY, deadline_ms=60_000)})


@pytest.mark.case("greptime 110")
def test_given_two_moves_of_a_region_then_the_second_begins_when_the_first_has_ended() -> None:
    async def main(cluster: Cluster) -> None:
        first = await submitted(cluster, move(FIRST, "dn-2", "dn-3"))
        second = await submitted(cluster, move(FIRST, "dn-1", "dn-2"))

        ends = [await ended(cluster, first), await ended(cluster, second)]

        assert [code_of(end) for end in ends] == [None, None]
        assert set(nodes_of(cluster, 0)) == {"dn-2", "dn-3"}

    lived(main, with_joining_copies)


def test_given_the_new_copy_removed_by_hand_when_waited_for_then_the_source_stays() -> None:
    async def main(cluster: Cluster) -> None:
        procedure = await submitted(cluster, move(FIRST, "dn-2", "dn-3"))
        await waits_for(cluster, procedure, "copy")
        learner = next(c for c in regions(cluster)[0]["copies"] if c["node"] == "dn-3")
        removal = RemoveCopy(
            table_id=1024,
            name="main.public.t",
            region_id=FIRST,
            node="dn-3",
            root=learner["root"],
            reason="test",
        )
        assert code_of(await finish(cluster, REMOVE_COPY.name, removal, {})) is None

        end = await ended(cluster, procedure)

        assert code_of(end) == "action-not-allowed"
        assert nodes_of(cluster, 0) == ["dn-1", "dn-2"]

    lived(main)


@pytest.mark.case("greptime 123")
def test_given_a_source_that_cannot_hand_over_then_it_leads_on_until_it_can() -> None:
    async def main(cluster: Cluster) -> None:
        leader = cluster.plane.nodes["dn-1"]
        leader.refuses["hand-over"] = Refused("unsupported")
        procedure = await submitted(cluster, move(FIRST, "dn-1", "dn-3"))
        while nodes_of(cluster, 0) != ["dn-1", "dn-2", "dn-3"]:
            await cluster.clock.sleep_ms(1_000)
        await cluster.clock.sleep_ms(60_000)
        assert nodes_of(cluster, 0)[0] == "dn-1"

        leader.refuses.clear()

        assert code_of(await ended(cluster, procedure)) is None
        assert set(nodes_of(cluster, 0)) == {"dn-2", "dn-3"}

    lived(main, with_joining_copies)


def test_given_a_new_leader_that_takes_no_writes_yet_then_the_source_stays_until_it_does() -> None:
    """It waits for its own promise: once the former leader is gone, nobody tells it to wait no
    more."""

    async def main(cluster: Cluster) -> None:
        cluster.plane.nodes["dn-2"].refuses["lead"] = Unavailable("not-ready")
        procedure = await submitted(cluster, move(THIRD, "dn-1", "dn-2"))
        await cluster.clock.sleep_ms(60_000)
        assert nodes_of(cluster, 2) == ["dn-2", "dn-1"]
        holder = "dn-1: dn-2, which leads, does not take writes yet"
        assert await waits_for(cluster, procedure, "copy") == holder

        cluster.plane.nodes["dn-2"].refuses.clear()

        assert code_of(await ended(cluster, procedure)) is None
        assert nodes_of(cluster, 2) == ["dn-2"]

    lived(main, with_joining_copies)


def test_given_a_new_copy_that_is_made_anew_before_the_source_goes_then_the_move_ends() -> None:
    async def main(cluster: Cluster) -> None:
        leader = cluster.plane.nodes["dn-1"]
        leader.refuses["hand-over"] = Refused("unsupported")
        state = move(FIRST, "dn-1", "dn-3")
        procedure = await submitted(cluster, state)
        while roles(cluster, 0) != [("dn-2", "in-sync"), ("dn-3", "in-sync")]:
            await cluster.clock.sleep_ms(1_000)
        first = next(copy for copy in regions(cluster)[0]["copies"] if copy["node"] == "dn-3")
        by_hand = {"node": "dn-3", "root": first["root"], "forced": True, "replaced_by": None}
        again = removal(state).model_copy(update=by_hand)
        assert code_of(await finish(cluster, REMOVE_COPY.name, again, {})) is None
        assert code_of(await finish(cluster, ADD_COPY.name, addition(state), {})) is None

        leader.refuses.clear()

        assert code_of(await ended(cluster, procedure)) is None
        assert set(nodes_of(cluster, 0)) == {"dn-2", "dn-3"}

    lived(main, with_joining_copies)


def test_given_a_third_copy_that_is_removed_while_a_member_is_to_lead_then_the_source_stays() -> (
    None
):
    """As the keeper of copies does that has seen one too many just before the move began."""

    async def main(cluster: Cluster) -> None:
        leader = cluster.plane.nodes["dn-1"]
        assert code_of(await finish(cluster, ADD_COPY.name, addition(TO_THIRD), {})) is None
        while roles(cluster, 0) != [("dn-2", "in-sync"), ("dn-3", "in-sync")]:
            await cluster.clock.sleep_ms(1_000)
        leader.refuses["hand-over"] = Refused("unsupported")
        procedure = await submitted(cluster, TO_THIRD)
        await cluster.clock.sleep_ms(10_000)
        second = next(copy for copy in regions(cluster)[0]["copies"] if copy["node"] == "dn-2")
        other = {"node": "dn-2", "root": second["root"]}
        surplus = removal(TO_THIRD).model_copy(update=other)
        assert code_of(await finish(cluster, REMOVE_COPY.name, surplus, {})) is None

        leader.refuses.clear()

        end = await ended(cluster, procedure)
        assert end.last.state["destination"] == "member"
        assert code_of(end) == "action-not-allowed"
        assert set(nodes_of(cluster, 0)) == {"dn-1", "dn-3"}

    lived(main, with_joining_copies)


def test_given_a_third_copy_that_is_removed_just_before_the_source_then_the_source_stays() -> None:
    steps = {name: MOVE_COPY.steps[name] for name in ("remove", "switch", "settle")}
    state = move(FIRST, "dn-2", "dn-1")
    member = {"destination": Destination.MEMBER, "to_root": "as it was found"}

    async def main(cluster: Cluster) -> None:
        end = await finish(cluster, MOVES, state.model_copy(update=member), {})

        assert code_of(end) is None
        assert end.result is not None
        assert not end.result["moved"]
        assert nodes_of(cluster, 0) == ["dn-1", "dn-2"]

    lived(main, kinds={MOVES: replace(MOVE_COPY, steps=steps, no_return="remove")})
