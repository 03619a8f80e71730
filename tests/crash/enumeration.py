"""Runs a scenario once without faults, then once for every call, mode and successor."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import httpx
import pytest

from keys.commit.committer import Committer
from keys.model.records import ProcedureOutcome
from keys.store.kv import Kv, Request
from keys.store.memory import MemoryKv
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from metasrv_base.ids import Ids
from metasrv_base.wire.node.orders import DropRegion
from procedures.engine.control import Command, Control
from procedures.engine.submit import SubmitRequest, Submitted
from procedures.kinds.registry import KINDS
from procedures.machine import Kind
from procedures.scheduling.manager import AUDIT_MS, Manager
from tests.fakes.cluster import STOPPED_MS, Cluster
from tests.fakes.faults import Call, Mode, Plan
from tests.fakes.heartbeats import BEAT_MS
from tests.fakes.holders import FakeHolders
from tests.fakes.term import Server
from tests.procedures.harness.agree import Agreement, history_of
from tests.procedures.harness.ends import TABLE, End
from tests.procedures.harness.scenario import Scenario, submission
from tests.procedures.harness.scenarios import SCENARIOS
from tests.sim.loop import SimLoop, run

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
SUCCESSORS = ("same", "another")
SECOND_CALL_MAX = 12  # a second fault comes early in the next term, or it would rarely come at all
LOOKS_MAX = 4  # of a deposed leader; a fault may strike one of them, and elect another rival
LOOK_MS_MAX = 320  # between looks of a client whether it was answered
CORE = (Mode.CRASH_BEFORE, Mode.APPLIED_CRASH, Mode.ANSWER_LOST, Mode.RIVAL, Mode.LATE)
"""Modes that strike every call, whichever server leads next."""
STOPS = (Mode.PAUSED_BEFORE, Mode.PAUSED_AFTER)
FULL = (Mode.NO_SPACE, Mode.NO_SPACE_DONE)
ON_ITS_WAY = (Mode.LATE, Mode.LATE_IN_TERM, Mode.PAUSED_AFTER)
"""Nothing of the kind can be said of a call that only reads."""
DEPOSES = (Mode.CRASH_BEFORE, Mode.APPLIED_CRASH, Mode.ANSWER_LOST, Mode.RIVAL, *STOPS)
SECOND = (Mode.CRASH_BEFORE, Mode.APPLIED_CRASH, Mode.ANSWER_LOST, Mode.RIVAL, Mode.LOST_REQUEST)


Patch = tuple[object, str, object]
"""Where, which name, and what stands there instead."""
SECOND_CAME = "a second fault"
UNDONE = (ProcedureOutcome.ROLLED_BACK, ProcedureOutcome.FAILED)
"""Other outcomes a procedure may have where a store or a node refuses it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """`at` call number, `mode` happens, and *who* leads afterwards."""

    at: int
    mode: Mode
    who: str
    then: tuple[int, Mode] | None = None
    """A second fault: the call and mode that strike the server that leads next."""


@dataclass(frozen=True, slots=True)
class Harness:
    """Changes to the world of a cell, for planted bugs; none by default."""

    alter: Callable[[Request], Request] = lambda request: request
    client: Callable[[Kv], Kv] = lambda kv: kv
    make_store: Callable[[Clock], MemoryKv] = MemoryKv
    kinds: Mapping[str, Kind[Any]] = field(default_factory=lambda: KINDS)
    takes_unknown_for_not_done: bool = False
    later: bool = False
    """The first server is sound; servers that take over are not."""
    patch: Patch | None = None
    make_committer: Callable[..., Committer] = Committer


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one cell."""

    calls: tuple[Call, ...]
    wrong: tuple[str, ...]
    outcome: str
    sometimes: Counter[str]
    """Rare states that were reached."""


def cells(calls: Sequence[Call]) -> Iterator[Cell]:
    """Every single fault: call x mode x who leads on."""
    for at, call in enumerate(calls):
        for mode in (*CORE, Mode.LATE_IN_TERM, *STOPS):
            if mode in ON_ITS_WAY and not call.writes:
                continue
            for who in SUCCESSORS:
                yield Cell(at, mode, who)
        if call.port.startswith("nodes.send"):
            yield Cell(at, Mode.OVERTAKEN, "same")
        yield Cell(at, Mode.LOST_REQUEST, "same")
        yield Cell(at, Mode.REFUSED, "same")
        if call.writes and call.port == "kv.txn":
            yield from (Cell(at, mode, "same") for mode in FULL)


def is_core(cell: Cell) -> bool:
    return cell.mode in (*CORE, Mode.LOST_REQUEST)


def doubles(calls: Sequence[Call], count: int, seed: str) -> Iterator[Cell]:
    """*count* cells with a second fault, drawn by *seed*: the first brings another leader."""
    draw = Random(seed)
    first = [cell for cell in cells(calls) if cell.mode in DEPOSES and cell.who == "another"]
    for cell in draw.sample(first, min(count, len(first))):
        second = draw.randrange(SECOND_CALL_MAX), draw.choice(SECOND)
        yield replace(cell, then=second)


def lived(name: str, cell: Cell | None) -> Run:
    """`life` of the scenario of that name."""
    return life(BY_NAME[name], cell)


def life(scenario: Scenario, cell: Cell | None, harness: Harness = Harness()) -> Run:
    """One run, in a world of its own. *cell* None: nothing goes wrong."""
    plan = Plan(cell.at, cell.mode) if cell else Plan()
    plan.hides_doubt = harness.takes_unknown_for_not_done
    seed = cell.at if cell else 0
    with pytest.MonkeyPatch.context() as patches:
        if harness.patch is not None and not harness.later:
            patches.setattr(*harness.patch)
        take = harness.patch if harness.later else None
        on_takeover = partial(patches.setattr, *take) if take else nothing_changes
        world = partial(_world, scenario, cell, harness, on_takeover)
        return run(lambda loop: _live(world(loop), scenario, cell, plan), seed)


def nothing_changes() -> None:
    """A server that takes over is like the first."""


def _world(
    scenario: Scenario,
    cell: Cell | None,
    harness: Harness,
    on_takeover: Callable[[], None],
    loop: SimLoop,
) -> Cluster:
    same = cell is not None and cell.who == "same"
    after: tuple[str, ...] = ("meta-1",) if same else ("meta-2",)
    if same and cell is not None and cell.mode in (Mode.RIVAL, *STOPS):
        after = ("meta-2", "meta-1")  # wins again: the same value at another revision
    deposes = cell is not None and (cell.mode is Mode.RIVAL or cell.who == "another")
    return Cluster(
        loop,
        kinds_of(scenario, harness.kinds),
        alter=harness.alter,
        client=harness.client,
        sound_kinds=kinds_of(scenario) if harness.later else None,
        on_takeover=on_takeover,
        make_store=harness.make_store,
        after=after,
        on_depose=deposes,
        plans=[Plan(*cell.then, armed=True)] if cell and cell.then else [],
        make_committer=harness.make_committer,
        one_transaction=scenario.one_transaction,
        sizes=scenario.sizes,
    )


def kinds_of(scenario: Scenario, kinds: Mapping[str, Kind[Any]] = KINDS) -> dict[str, Kind[Any]]:
    """With the deadline that the scenario gives to its own."""
    if scenario.deadline_ms is None:
        return dict(kinds)
    own = replace(kinds[scenario.kind], deadline_ms=scenario.deadline_ms)
    return {**kinds, scenario.kind: own}


async def _live(cluster: Cluster, scenario: Scenario, cell: Cell | None, plan: Plan) -> Run:
    await scenario.given(cluster, await cluster.bootstrap())
    meet_holders(scenario, cluster.holders)
    first = await cluster.started("meta-1", plan)
    await cluster.detected()
    plan.armed = True
    answered = await submit(cluster, first, scenario)
    if scenario.cancel_after_ms is not None:
        await cluster.clock.sleep_ms(scenario.cancel_after_ms)
        await _cancel(cluster, answered)
    is_over = await cluster.quiet()
    wrong = [] if is_over else [f"never ends: {cluster.living()}"]
    if cell is not None and not plan.happened:
        wrong.append("the fault never happened: the run is not the one that was counted")
    if cell is not None and {cell.mode, cell.then and cell.then[1]} & set(STOPS):
        wrong += await _wake(cluster)
    for server in cluster.servers:
        server.plan.armed = False
    wrong += await _arrive(cluster)
    store = cluster.kv._store
    agreement = history_of(store.log_from(1))
    over, revision = set(outcomes_of(agreement)), store.revision
    if is_over:  # else the repeat waits as long again, for the same procedure
        wrong += await ask_again(cluster, scenario, answered, over)
    await hear_nodes(cluster, scenario)
    agreement = history_of(store.log_from(revision + 1), agreement)
    wrong += judge(cluster, agreement, scenario, cell)
    if cluster.leader.manager.living():
        wrong.append("locks are held at the end")
    outcomes = outcomes_of(agreement)
    second = cluster.servers[1].plan.happened if len(cluster.servers) > 1 else False
    sometimes = cluster.sometimes + Counter(outcomes.values()) + Counter({SECOND_CAME: second})
    return Run(tuple(plan.calls), tuple(wrong), str(outcomes), sometimes)


async def hear_nodes(cluster: Cluster, scenario: Scenario) -> None:
    """Waits for the heartbeats behind which the end of a scenario is judged."""
    if scenario.awaits_heartbeats:
        await cluster.clock.sleep_ms(2 * BEAT_MS)


async def _wake(cluster: Cluster) -> list[str]:
    """Every server that was deposed and lives learns of it: one that stood still, when it wakes."""
    await cluster.clock.sleep_ms(STOPPED_MS)
    for _ in range(LOOKS_MAX):  # one at rest learns of it at its next look at the fence
        await cluster.clock.sleep_ms(AUDIT_MS)
        if all(cluster.is_down(server) for server in cluster.servers[:-1]):
            break
    wrong = [] if await cluster.quiet() else [f"never ends: {cluster.living()}"]
    deposed = [server for server in cluster.servers[:-1] if not cluster.is_down(server)]
    return wrong + [f"{server.node} still believes that it leads" for server in deposed]


async def _arrive(cluster: Cluster) -> list[str]:
    """Delivers the requests that were on their way, after the end; returns the faults."""
    before = cluster.stored()
    for late in (work for server in cluster.servers for work in server.plan.late):
        with suppress(MetaError, httpx.TransportError):
            await late()
    return [] if cluster.stored() == before else ["what arrived late was taken"]


def meet_holders(scenario: Scenario, holders: FakeHolders) -> None:
    """Registers the holders that may still use the table when the scenario begins."""
    if scenario.dead_holder:
        holders.uses("fe-1", TABLE, 1)
        holders.dies("fe-1")


async def submit(cluster: Cluster, server: Server, scenario: Scenario) -> str | None:
    """Submits once, and does not repeat it: a retry would hide what is never resumed.

    The procedure, if the client was told one.
    """
    asked = cluster.ask(
        server, lambda manager: attempt(manager, scenario, cluster.kinds_at(server), cluster.ids)
    )
    await _answered(cluster, server, asked)
    with suppress(MetaError, asyncio.InvalidStateError):
        return asked.result().procedure
    return None


async def _answered(cluster: Cluster, server: Server, asked: "asyncio.Task[Any]") -> None:
    """Or never will be. A server may stand still for longer than a lease: looks are ever rarer."""
    look_ms = 10
    while not asked.done() and not cluster.is_down(server):
        await cluster.clock.sleep_ms(look_ms)
        look_ms = min(2 * look_ms, LOOK_MS_MAX)


async def attempt(
    manager: Manager, scenario: Scenario, kinds: Mapping[str, Kind[Any]], ids: Ids
) -> Submitted:
    asked = SubmitRequest(ids.procedure_id(), submission(scenario), "fingerprint")
    return await manager.submit(kinds[scenario.kind], scenario.state, asked)


async def _cancel(cluster: Cluster, procedure: str | None) -> None:
    """Asked once, of whoever leads; what it is answered is judged by the end alone."""
    server = cluster.leader
    if procedure is None or cluster.is_down(server) or not server.ready.is_set():
        return
    cancel = Command(Control.CANCEL, by="anna")
    asked = cluster.ask(server, lambda manager: manager.control(procedure, cancel))
    await _answered(cluster, server, asked)
    with suppress(MetaError, asyncio.InvalidStateError):
        asked.result()


async def ask_again(
    cluster: Cluster, scenario: Scenario, answered: str | None, over: Set[str]
) -> list[str]:
    """The client's repeat under the same key: the same procedure, or one that never was before.

    *over*: procedures that have ended.
    """
    leader = cluster.leader
    await leader.ready.wait()
    again = await cluster.ask(
        leader, lambda manager: attempt(manager, scenario, cluster.kinds_at(leader), cluster.ids)
    )
    if not await cluster.quiet():
        return ["the repeat never ends"]
    return repeated(again, answered, over)


def repeated(again: Submitted, answered: str | None, known: Set[str]) -> list[str]:
    """Returns the faults of the answer to a repeated request. *known*: procedures that had ended
    before."""
    if again.replayed and {again.procedure} == {answered or again.procedure} & known:
        return []
    if not again.replayed and answered is None and not known:
        return []
    return [f"told {answered}, over {known}, the repeat is {again}"]


def outcomes_of(agreement: Agreement) -> dict[str, str]:
    """Root procedures that are over, with their outcomes."""
    found = agreement.family("__procedure_history").items()
    return {name: end["outcome"] for (name,), end in found if end["last"]["parent"] is None}


def judge(
    cluster: Cluster, agreement: Agreement, scenario: Scenario, cell: Cell | None
) -> list[str]:
    """Returns the faults at the end of a life, in *agreement* and in the cluster's plane."""
    wrong = [*agreement.wrong, *cluster.violations, *cluster.plane.violations]
    wrong += [
        f"left to a heartbeat: {order.region_id} of {node}"
        for node, order in cluster.plane.instructed
        if isinstance(order, DropRegion)
    ]
    over = outcomes_of(agreement)
    if len(over) != 1:
        return [*wrong, f"{len(over)} procedures for one request"]
    (outcome,) = over.values()
    twice = [name for name, count in agreement.endings.items() if count != 1]
    if twice:
        wrong.append(f"more than one history: {twice}")
    ends = dict(scenario.ends)
    if cell and cell.mode is Mode.REFUSED:
        ends = {**dict.fromkeys(UNDONE, scenario.undone), **ends}
    legal = next((one for one in ends if str(one) == outcome), None)
    if legal is None:
        return [*wrong, f"ended {outcome}, not {sorted(ends)}"]
    return wrong + ends[legal](End(cluster, agreement, legal))
