"""One life of a procedure that somebody cancels just before, or just behind, one of its commits."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from keys.model.families import family_of
from keys.model.records import ProcedureKey, ProcedureOutcome
from keys.store.kv import Request, TxnAnswer
from keys.store.memory import MemoryKv
from metasrv_base.errors import Conflict, MetaError, NotFound
from procedures.engine.control import Command, Control
from procedures.kinds.registry import KINDS
from procedures.machine import Kind
from tests.crash.enumeration import hear_nodes, meet_holders, outcomes_of, submit
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import End
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS
from tests.sim.loop import SimLoop, run

SOUND = [
    one
    for one in SCENARIOS
    if ProcedureOutcome.SUCCEEDED in one.ends and one.cancel_after_ms is None
]
ONLY_ONE = 2
"""Commits of what is done by one step: it is submitted, and it is over."""
Moment = Literal["before", "behind"]
Kinds: TypeAlias = Mapping[str, Kind[Any]]
TURNS = 50  # of the loop, in which an attempt that was sent has surely arrived


class Cancelling(MemoryKv):
    """It counts the commits of the first procedure that it is given, and cancels that at one."""

    def meet(self, cluster: Cluster, at: int, moment: Moment) -> None:
        self.cluster, self.at, self.moment = cluster, at, moment
        self.procedure: str | None = None
        self.commits = 0
        self.asked: asyncio.Task[object] | None = None

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        if not self._is_commit(request):
            return await super().txn(request, deadline_ms=deadline_ms)
        number, self.commits = self.commits, self.commits + 1
        if number == self.at and self.moment == "before":
            await self._cancel()
        answer = await super().txn(request, deadline_ms=deadline_ms)
        if number == self.at and self.moment == "behind":
            await self._cancel()
        return answer

    def _is_commit(self, request: Request) -> bool:
        if not hasattr(self, "cluster"):
            return False
        found = [
            ProcedureKey.parse(write.key).procedure
            for write in request.writes
            if family_of(write.key) is ProcedureKey
        ]
        if self.procedure is None and found:
            self.procedure = found[0]
        return self.procedure in found

    async def _cancel(self) -> None:
        """Somebody asks, and does not wait: what is committed meanwhile goes on."""
        procedure, cancel = self.procedure, Command(Control.CANCEL, by="ops")
        assert procedure is not None
        self.asked = self.cluster.ask(
            self.cluster.leader, lambda manager: manager.control(procedure, cancel)
        )
        for _ in range(TURNS):
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Life:
    commits: int
    """Commits of the procedure's record, its submission and its end included."""
    outcome: str
    wrong: tuple[str, ...] = field(default=())


def lived(scenario: Scenario, at: int, moment: Moment, kinds: Kinds = KINDS) -> Life:
    """*at* -1: nobody cancels it."""
    return run(lambda loop: _live(loop, scenario, (at, moment), dict(kinds)), 1)


async def _live(
    loop: SimLoop, scenario: Scenario, when: tuple[int, Moment], kinds: dict[str, Kind[Any]]
) -> Life:
    if scenario.deadline_ms is not None:
        kinds[scenario.kind] = replace(kinds[scenario.kind], deadline_ms=scenario.deadline_ms)
    cluster = Cluster(loop, kinds, make_store=Cancelling)
    await scenario.given(cluster, await cluster.bootstrap())
    meet_holders(scenario, cluster.holders)
    server = await cluster.started()
    store = cluster.kv
    assert isinstance(store, Cancelling)
    store.meet(cluster, *when)
    await submit(cluster, server, scenario)
    if not await cluster.quiet():
        return Life(store.commits, "", ("never ends",))
    await hear_nodes(cluster, scenario)
    return await _judged(cluster, store, scenario)


async def _judged(cluster: Cluster, store: Cancelling, scenario: Scenario) -> Life:
    agreement = history_of(store._store.log_from(1))
    (said,) = outcomes_of(agreement).values()
    outcome = ProcedureOutcome(said)
    wrong = [*agreement.wrong, *cluster.violations, *cluster.plane.violations]
    check = scenario.undone if outcome is ProcedureOutcome.CANCELLED else scenario.ends.get(outcome)
    if check is None:
        wrong.append(f"ended {outcome}")
    else:
        wrong += check(End(cluster, agreement, outcome))
    answered = None if store.asked is None else await _answered(store.asked)
    was_taken = store.asked is not None and answered is None
    if was_taken is not (outcome is ProcedureOutcome.CANCELLED):
        wrong.append(f"the attempt was {answered or 'taken'}, and it ended {outcome}")
    return Life(store.commits, said, tuple(wrong))


async def _answered(asked: "asyncio.Task[object]") -> str | None:
    """Why it was refused; None: it was not."""
    try:
        await asked
    except (Conflict, NotFound) as error:
        return f"refused with {error.code}"
    except MetaError as error:
        return f"met by {error.code}"
    return None
