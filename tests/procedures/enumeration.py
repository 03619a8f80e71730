"""Runs a scenario once without faults, then once for every call, mode and successor."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from base.errors import MetaError
from keys.kv import Request
from keys.records import ProcedureHistoryKey
from procedures.kinds.registry import KINDS
from procedures.machine import Kind
from procedures.manager import Manager
from procedures.submit import Submission, Submitted
from tests.fakes.cluster import Cluster, Server
from tests.fakes.faults import Call, Mode, Plan
from tests.procedures.agree import history_of
from tests.procedures.ends import End
from tests.procedures.scenarios import Scenario, submission
from tests.sim.loop import SimLoop, run

MODES = (Mode.CRASH_BEFORE, Mode.APPLIED_CRASH, Mode.ANSWER_LOST, Mode.RIVAL, Mode.LATE)
SUCCESSORS = ("same", "another")


@dataclass(frozen=True, slots=True)
class Cell:
    """`at` call number, `mode` happens, and *who* leads afterwards."""

    at: int
    mode: Mode
    who: str


@dataclass(frozen=True, slots=True)
class Harness:
    """How the world of a cell differs from a sound one: for planted bugs."""

    alter: Callable[[Request], Request] = lambda request: request
    kinds: Mapping[str, Kind[Any]] = field(default_factory=lambda: KINDS)
    takes_unknown_for_not_done: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one cell."""

    calls: tuple[Call, ...]
    wrong: tuple[str, ...]
    outcome: str


def cells(calls: Sequence[Call]) -> Iterator[Cell]:
    for at, call in enumerate(calls):
        for mode in MODES:
            if mode is Mode.LATE and not call.writes:
                continue  # nothing is on its way
            for who in SUCCESSORS:
                yield Cell(at, mode, who)
        yield Cell(at, Mode.LOST_REQUEST, "same")


def life(scenario: Scenario, cell: Cell | None, harness: Harness = Harness()) -> Run:
    """One run, in a world of its own. *cell* None: nothing goes wrong."""
    plan = Plan(cell.at, cell.mode) if cell else Plan()
    plan.hides_doubt = harness.takes_unknown_for_not_done
    seed = cell.at if cell else 0
    return run(lambda loop: _live(loop, scenario, cell, plan, harness), seed)


def _world(loop: SimLoop, scenario: Scenario, cell: Cell | None, harness: Harness) -> Cluster:
    same = cell is not None and cell.who == "same"
    after: tuple[str, ...] = ("meta-1",) if same else ("meta-2",)
    if same and cell is not None and cell.mode is Mode.RIVAL:
        after = ("meta-2", "meta-1")  # wins again: the same value at another revision
    deposes = cell is not None and (cell.mode is Mode.RIVAL or cell.who == "another")
    kinds = dict(harness.kinds)
    if scenario.deadline_ms is not None:
        kinds[scenario.kind] = replace(kinds[scenario.kind], deadline_ms=scenario.deadline_ms)
    return Cluster(loop, kinds, alter=harness.alter, after=after, on_depose=deposes)


async def _live(
    loop: SimLoop, scenario: Scenario, cell: Cell | None, plan: Plan, harness: Harness
) -> Run:
    cluster = _world(loop, scenario, cell, harness)
    await scenario.given(cluster, await cluster.bootstrap())
    first = await cluster.started("meta-1", plan)
    plan.armed = True
    answered = await submit(cluster, first, scenario)
    if scenario.cancel_after_ms is not None:
        await cluster.clock.sleep_ms(scenario.cancel_after_ms)
        await _cancel(cluster, answered)
    wrong = [] if await cluster.quiet() else [f"never ends: {cluster.living()}"]
    if cell is not None and not plan.happened:
        wrong.append("the fault never happened: the run is not the one that was counted")
    plan.armed = False
    before = cluster.stored()
    for late in plan.late:
        with suppress(MetaError):
            await late()
    if cluster.stored() != before:
        wrong.append("what arrived late was taken")
    wrong += await _ask_again(cluster, scenario, answered)
    wrong += _judge(cluster, scenario)
    outcomes = _outcomes(cluster)
    return Run(tuple(plan.calls), tuple(wrong), str(outcomes))


async def submit(cluster: Cluster, server: Server, scenario: Scenario) -> str | None:
    """Submits once, and does not repeat it: a retry would hide what is never resumed.

    The procedure, if the client was told one.
    """
    asked = cluster.ask(server, lambda manager: wish(cluster, manager, scenario))
    while not asked.done() and not cluster.is_down(server):
        await cluster.clock.sleep_ms(10)
    with suppress(MetaError, asyncio.InvalidStateError):
        return asked.result().procedure
    return None


async def wish(cluster: Cluster, manager: Manager, scenario: Scenario) -> Submitted:
    asked = Submission(cluster.ids.procedure_id(), submission(scenario), "fingerprint")
    return await manager.submit(cluster.kinds[scenario.kind], scenario.state, asked)


async def _cancel(cluster: Cluster, procedure: str | None) -> None:
    """Asked once, of whoever leads; what it is answered is judged by the end alone."""
    server = cluster.leader
    if procedure is None or cluster.is_down(server) or not server.ready.is_set():
        return
    asked = cluster.ask(server, lambda manager: manager.cancel(procedure))
    while not asked.done() and not cluster.is_down(server):
        await cluster.clock.sleep_ms(10)
    with suppress(MetaError, asyncio.InvalidStateError):
        asked.result()


async def _ask_again(cluster: Cluster, scenario: Scenario, answered: str | None) -> list[str]:
    """The client's repeat under the same key: the same procedure, or one that never was before."""
    known = set(_outcomes(cluster))
    leader = cluster.leader
    await leader.ready.wait()
    again = await cluster.ask(leader, lambda manager: wish(cluster, manager, scenario))
    if not await cluster.quiet():
        return ["the repeat never ends"]
    if again.replayed and {again.procedure} == {answered or again.procedure} & known:
        return []
    if not again.replayed and answered is None and not known:
        return []
    return [f"told {answered}, over {known}, the repeat is {again}"]


def _outcomes(cluster: Cluster) -> dict[str, str]:
    """Root procedures that are over, with their outcomes."""
    start, end = ProcedureHistoryKey.under()
    found = {
        ProcedureHistoryKey.parse(key).procedure: json.loads(value)
        for key, value in cluster.stored().items()
        if start <= key < end
    }
    return {name: end["outcome"] for name, end in found.items() if end["last"]["parent"] is None}


def _judge(cluster: Cluster, scenario: Scenario) -> list[str]:
    agreement = history_of(cluster.kv._store.log_from(1))
    wrong = [*agreement.wrong, *cluster.violations, *cluster.plane.violations]
    over = _outcomes(cluster)
    if len(over) != 1:
        return [*wrong, f"{len(over)} procedures for one request"]
    (outcome,) = over.values()
    twice = [name for name, count in agreement.endings.items() if count != 1]
    if twice:
        wrong.append(f"more than one history: {twice}")
    if cluster.leader.manager.living():
        wrong.append("locks are held at the end")
    checks = {str(legal): check for legal, check in scenario.ends.items()}
    if outcome not in checks:
        return [*wrong, f"ended {outcome}, not {sorted(checks)}"]
    legal = next(one for one in scenario.ends if str(one) == outcome)
    return wrong + checks[outcome](End(cluster, agreement, legal))
