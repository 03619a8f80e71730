"""One life of a procedure that is paused before one of its commits, and resumed while the answer to
the commit of the pause is lost.

Whoever asked for the pause has no answer yet, and the leader does not know whether it is stored.
"""

import asyncio
from dataclasses import dataclass, field

from keys.model.families import family_of
from keys.model.records import ProcedureKey, ProcedureOutcome, ProcedureRecord
from keys.store.kv import Put, Request, TxnAnswer
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv_base.errors import Conflict, MetaError, NotFound, Unknown
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command, Control
from procedures.kinds.registry import KINDS
from tests.crash.cancelling import TURNS
from tests.crash.enumeration import hear_nodes, meet_holders, outcomes_of, submit
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import End
from tests.procedures.harness.scenario import Scenario
from tests.sim.loop import SimLoop, run

LOST = ("pause", "resume")
"""Controls whose first answer is lost, in the lives of the matrix."""


class Losing(MemoryKv):
    """It counts the commits of the first procedure that it is given. Before one of them somebody
    pauses that; the answers to the writes of controls are lost."""

    cluster: Cluster | None = None
    procedure: str | None = None
    commits = 0

    def meet(self, cluster: Cluster, at: int) -> None:
        self.cluster, self.at = cluster, at
        self.left = list(LOST)
        self.asked: dict[Control, asyncio.Task[object]] = {}

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        action = self._control_of(request)
        if action is None and self._is_commit(request):
            number, self.commits = self.commits, self.commits + 1
            if number == self.at:
                await self._ask(Control.PAUSE)
        answer = await super().txn(request, deadline_ms=deadline_ms)
        if action is not None and action in self.left:
            self.left.remove(action)
            if action == "pause":
                await self._ask(Control.RESUME)
            raise Unknown(call="txn")
        return answer

    def _records(self, request: Request) -> dict[str, bytes | None]:
        return {
            ProcedureKey.parse(write.key).procedure: write.value if isinstance(write, Put) else None
            for write in request.writes
            if family_of(write.key) is ProcedureKey
        }

    def _is_commit(self, request: Request) -> bool:
        if self.cluster is None:
            return False
        found = self._records(request)
        if self.procedure is None and found:
            self.procedure = next(iter(found))
        return self.procedure in found

    def _control_of(self, request: Request) -> str | None:
        """The control that *request* is the write of, if its record has one that is not stored."""
        if self.procedure is None:
            return None
        raw, held = self._records(request).get(self.procedure), self._held()
        if raw is None or held is None:
            return None
        record = decode(ProcedureRecord, raw, key="record")
        added = record.controls[len(held.controls) :]
        return added[-1].action if added else None

    def _held(self) -> ProcedureRecord | None:
        assert self.procedure is not None
        held = self._store.get(bytes(ProcedureKey(self.procedure)))
        return None if held is None else decode(ProcedureRecord, held.value, key="record")

    async def _ask(self, control: Control) -> None:
        """Somebody asks, and does not wait: what is committed meanwhile goes on."""
        cluster, procedure, command = self.cluster, self.procedure, Command(control, by="ops")
        assert cluster is not None
        assert procedure is not None
        self.asked[control] = cluster.ask(
            cluster.leader, lambda manager: manager.control(procedure, command)
        )
        for _ in range(TURNS):
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Life:
    commits: int
    """Commits of the procedure's steps, its submission and its end included."""
    lost: int
    """Answers to controls that were lost."""
    outcome: str
    wrong: tuple[str, ...] = field(default=())


def lived(scenario: Scenario, at: int) -> Life:
    """*at* -1: nobody pauses it."""
    return run(lambda loop: _live(loop, scenario, at), 1)


async def _live(loop: SimLoop, scenario: Scenario, at: int) -> Life:
    cluster = Cluster(loop, dict(KINDS), make_store=Losing)
    await scenario.given(cluster, await cluster.bootstrap())
    meet_holders(scenario, cluster.holders)
    server = await cluster.started()
    store = cluster.kv
    assert isinstance(store, Losing)
    store.meet(cluster, at)
    await submit(cluster, server, scenario)
    if not await cluster.quiet():
        return Life(store.commits, 0, "", ("never ends",))
    await hear_nodes(cluster, scenario)
    lost = len(LOST) - len(store.left)
    agreement = history_of(store._store.log_from(1))
    (said,) = outcomes_of(agreement).values()
    wrong = [*agreement.wrong, *cluster.violations, *cluster.plane.violations]
    check = scenario.ends.get(ProcedureOutcome(said))
    if check is None:
        wrong.append(f"ended {said}")
    else:
        wrong += check(End(cluster, agreement, ProcedureOutcome(said)))
    for control, asked in store.asked.items():
        wrong += await _misled(control, asked)
    return Life(store.commits, lost, said, tuple(wrong))


async def _misled(control: Control, asked: "asyncio.Task[object]") -> list[str]:
    """An answer that says a control was taken shows it; a refusal is of one that came too late."""
    try:
        found = await asked
    except (Conflict, NotFound):
        return []
    except MetaError as error:
        return [f"the {control} met {error.code}"]
    return [] if isinstance(found, ActiveProcedure) else [f"the {control} was answered {found}"]
