"""Cases 1-27: what a manager owes its clients, from term to term."""

import asyncio
import json
from importlib import import_module
from pathlib import Path

import pytest

from keys.model.records import ProcedureHistory, ProcedureHistoryKey, ProcedureKey, ProcedureOutcome
from keys.store.kv import Put, Request
from metasrv_base.errors import MetaError, NotFound, Unavailable
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.submit import SubmitRequest
from procedures.kinds import registry
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.registry import KINDS
from procedures.machine import Kind
from tests.conformance.looking import puts_of
from tests.fakes.faults import Mode
from tests.procedures.harness.gates import Gate
from tests.procedures.harness.leader_office import OPERATOR, SMALL, Office, office
from tests.procedures.kinds.failover.runs import children_of


@pytest.mark.case("greptime 1")
def test_given_a_submission_then_it_is_found_and_waited_for_and_an_unknown_id_is_not() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()
        manager = at.cluster.leader.manager

        found = await manager.find(at.names["a"])
        waited = await manager.wait(at.names["a"], deadline_ms=10)
        with pytest.raises(NotFound):
            await manager.find(at.cluster.ids.procedure_id())

        assert isinstance(found, ActiveProcedure)
        assert found is waited
        assert at.state("a") == "running"
        at.let("a", "a again")
        assert isinstance(await manager.wait(at.names["a"], deadline_ms=60_000), ProcedureHistory)

    office(scenario)


@pytest.mark.case("greptime 2", "greptime 14")
def test_given_a_leader_that_is_deposed_when_its_procedure_never_ends_then_nothing_is_left() -> (
    None
):
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.settle()
        task = next(iter(at.server.manager.living()))[1].task

        await at.cluster.started("meta-2")
        await at.server.ended.wait()

        assert task is not None
        assert task.done()
        assert at.names["a"] in at.cluster.living()  # the record is the next leader's
        at.let("a", "a again")
        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED
        await at.submit("b", "table:1")
        at.let("b", "b again")
        assert (await at.end("b")).outcome is ProcedureOutcome.SUCCEEDED

    office(scenario)


@pytest.mark.case("greptime 4", "greptime 17")
def test_given_an_id_that_lives_or_is_over_when_submitted_again_then_nothing_new_runs() -> None:
    async def scenario(at: Office) -> None:
        manager, kind = at.cluster.leader.manager, at.cluster.kinds["gate"]
        client = OPERATOR.model_copy(update={"idempotency": None})
        request = SubmitRequest(at.cluster.ids.procedure_id(), client, "")
        at.names["a"] = request.procedure

        first = await manager.submit(kind, Gate(name="a"), request)
        living = await manager.submit(kind, Gate(name="a"), request)
        at.let("a", "a again")
        await at.end("a")
        over = await manager.submit(kind, Gate(name="a"), request)
        await at.settle()

        assert [one.replayed for one in (first, living, over)] == [False, True, True]
        assert at.gates.ran == ["a", "a again"]
        assert at.cluster.living() == []

    office(scenario)


async def fail_over(at: Office) -> str:
    request = SubmitRequest(at.cluster.ids.procedure_id(), OPERATOR, "")
    state = FailoverNode(node="dn-1", reason="test")
    await at.cluster.leader.manager.submit(KINDS["failover_node"], state, request)
    return request.procedure


async def with_children(at: Office) -> str:
    """A failover of a node, once its two children live."""
    parent = await fail_over(at)
    while len(at.cluster.leader.manager.living()) < 3:
        await at.cluster.clock.sleep_ms(1)
    return parent


@pytest.mark.case("greptime 5", "greptime 9")
def test_given_a_parent_when_it_has_children_then_it_comes_first_and_they_have_its_client() -> None:
    async def scenario(at: Office) -> None:
        parent = await with_children(at)
        (root, *children) = at.cluster.leader.manager.living()

        assert root[0] == parent
        for child, entry in children:
            record = entry.held.record
            assert record.parent == parent
            assert record.client.submitted_by == OPERATOR.submitted_by
            assert record.client.idempotency is None  # what the client asked once is not asked anew
            assert puts_of(at.cluster, ProcedureKey(child))[0]["parent"] == parent

    office(scenario)


@pytest.mark.case("greptime 7")
def test_given_a_submission_when_it_ends_then_it_began_once_and_ended_once() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        at.let("a", "a again")
        await at.end("a")
        await at.next_leader()
        await at.settle()

        steps = [put["step"] for put in puts_of(at.cluster, ProcedureKey(at.names["a"]))]
        ends = puts_of(at.cluster, ProcedureHistoryKey(at.names["a"]))
        assert steps == ["first", "second"]
        assert [end["outcome"] for end in ends] == ["succeeded"]

    office(scenario)


@pytest.mark.case("greptime 11", "greptime 23")
def test_given_a_record_of_before_some_fields_when_recovered_then_it_runs_and_says_so() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.settle()
        at.cluster.loop.kill(at.server.node)
        key = bytes(ProcedureKey(at.names["a"]))
        record = json.loads(at.cluster.stored()[key])
        for late in ("trail", "timeline", "parent", "cancel", "resumed", "catalog_version"):
            record.pop(late, None)
        old = Request(writes=(Put(key, json.dumps(record).encode()),))
        await at.cluster.kv.txn(old, deadline_ms=1_000)

        await at.cluster.started("meta-2")
        at.let("a", "a again")
        history = await at.end("a")

        assert history.outcome is ProcedureOutcome.SUCCEEDED
        assert history.last.resumed == 1

    office(scenario)


@pytest.mark.case("greptime 12", "greptime 25")
@pytest.mark.case("catalog 150")
def test_given_a_leader_that_dies_at_the_answer_when_led_on_then_it_ends_for_who_asked() -> None:
    async def scenario(at: Office) -> None:
        at.let("a", "a again")
        plan = at.server.plan
        plan.armed, plan.at, plan.mode = True, 0, Mode.APPLIED_CRASH
        at.cluster.loop.spawn(at.server.node, at.submit("a", key="1"))
        await at.settle()
        (at.names["a"],) = at.cluster.living()
        before = at.gates.ran.copy()

        await at.next_leader()
        history = await at.end("a")

        assert before == []  # not even its first step had begun
        assert (history.outcome, history.last.client.submitted_by) == (
            ProcedureOutcome.SUCCEEDED,
            "anna",
        )

    office(scenario)


@pytest.mark.case("greptime 15")
def test_given_the_kinds_then_no_two_bear_one_name() -> None:
    folder = Path(registry.__file__).parent
    names = (path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py"))
    modules = [import_module(".".join(["procedures.kinds", *parts])) for parts in names]
    named = {
        id(value): value.name
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Kind)
    }

    assert sorted(named.values()) == sorted(KINDS)
    assert all(kind.name == name for name, kind in KINDS.items())


@pytest.mark.case("greptime 16")
def test_given_a_parent_and_its_children_when_the_leader_dies_then_there_is_no_second_child() -> (
    None
):
    async def scenario(at: Office) -> None:
        parent = await with_children(at)
        before = [procedure for procedure, _ in at.cluster.leader.manager.living()]

        await at.next_leader()
        after = [procedure for procedure, _ in at.cluster.leader.manager.living()]
        history = await at.cluster.leader.manager.wait(parent, deadline_ms=600_000)

        assert after == before
        assert isinstance(history, ProcedureHistory)
        children = set(children_of(at.cluster, parent).values())
        assert children == set(before) - {parent}
        start, end = ProcedureHistoryKey.under()
        assert sum(start <= key < end for key in at.cluster.stored()) == 3

    office(scenario)


@pytest.mark.case("greptime 20")
def test_given_a_server_that_leads_again_when_asked_then_it_takes_what_comes() -> None:
    async def scenario(at: Office) -> None:
        for number, name in enumerate(("meta-2", "meta-1", "meta-2")):
            await at.cluster.started(name)
            await at.submit(str(number))
            at.let(str(number), f"{number} again")
            assert (await at.end(str(number))).outcome is ProcedureOutcome.SUCCEEDED

        request = SubmitRequest(at.cluster.ids.procedure_id(), OPERATOR, "")
        with pytest.raises(MetaError):  # its first term is over all the same
            await at.server.manager.submit(at.cluster.kinds["gate"], Gate(name="x"), request)
        await at.server.ended.wait()

    office(scenario)


@pytest.mark.case("greptime 22")
def test_given_a_full_queue_when_one_ends_then_the_next_is_taken() -> None:
    async def scenario(at: Office) -> None:
        for name in ("a", "b", "c"):
            await at.submit(name)
        with pytest.raises(Unavailable):
            await at.submit("d")

        at.let("a", "a again")
        await at.end("a")

        assert (await at.submit("d")).replayed is False

    office(scenario, SMALL)


@pytest.mark.case("greptime 10")
def test_given_a_store_that_refuses_when_a_child_is_submitted_then_it_is_there_once_or_not() -> (
    None
):
    async def scenario(at: Office) -> None:
        full_until = at.cluster.clock.mono_ms() + 3_000
        parent = await fail_over(at)
        at.cluster.full_until_ms = full_until
        await asyncio.sleep(0)
        history = await at.cluster.leader.manager.wait(parent, deadline_ms=600_000)

        assert isinstance(history, ProcedureHistory)
        assert history.finished_at_ms >= full_until
        children = set(children_of(at.cluster, parent).values())
        assert len(children) == 2
        for child in children:
            assert len(puts_of(at.cluster, ProcedureHistoryKey(child))) == 1

    office(scenario)


@pytest.mark.case("greptime 3", "greptime 8")
@pytest.mark.case("catalog 10")
def test_given_a_term_that_is_over_when_asked_to_submit_then_an_error_and_nothing_is_left() -> None:
    async def scenario(at: Office) -> None:
        await at.cluster.started("meta-2")
        kind, old = at.cluster.kinds["gate"], at.server.manager
        request = SubmitRequest(at.cluster.ids.procedure_id(), OPERATOR, "")

        with pytest.raises(MetaError):
            await old.submit(kind, Gate(name="a"), request)
        await at.settle()

        assert at.cluster.living() == []
        assert at.gates.ran == []
        assert puts_of(at.cluster, ProcedureKey(request.procedure)) == []

    office(scenario)


@pytest.mark.case("greptime 27")
def test_given_a_record_of_an_unknown_kind_when_led_on_then_it_is_kept_and_others_go_on() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.submit("b", "table:2")
        await at.settle()
        at.cluster.loop.kill(at.server.node)
        key = bytes(ProcedureKey(at.names["a"]))
        record = {**json.loads(at.cluster.stored()[key]), "kind": "of_tomorrow"}
        raw = json.dumps(record).encode()
        await at.cluster.kv.txn(Request(writes=(Put(key, raw),)), deadline_ms=1_000)

        await at.cluster.started("meta-2")
        at.let("b", "b again")

        assert (await at.end("b")).outcome is ProcedureOutcome.SUCCEEDED
        assert at.state("a") == "parked"
        assert at.cluster.stored()[key] == raw

    office(scenario)
