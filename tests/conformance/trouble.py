"""Gates whose steps fail as a test says, and an office that has them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from metasrv_base.errors import MetaError
from procedures.context import Context
from procedures.machine import Goto, Outcome
from procedures.scheduling.admission import Limits
from tests.fakes.cluster import LIMITS, Cluster
from tests.procedures.harness.gates import Gate, Gates
from tests.procedures.harness.leader_office import Office
from tests.procedures.harness.scenarios import with_two_tables_and_dead_node
from tests.sim.loop import SimLoop, run


@dataclass
class Trouble(Gates):
    """Each run of a step raises the next of its errors, if one is left."""

    errors: dict[str, list[MetaError]] = field(default_factory=dict)
    """`a`, `a again` or `undo a` -> what its runs raise, in order."""
    attempts: list[int] = field(default_factory=list)
    """The attempt number that each run of a step was given, in order."""
    repeats: int = 0
    """So many times the first step comes after itself."""

    async def first(self, state: Gate, at: Context) -> Outcome[Gate]:
        self._meet(state.name, at)
        outcome = await super().first(state, at)
        if not self.repeats:
            return outcome
        self.repeats -= 1
        return Goto("first", state)

    async def second(self, state: Gate, at: Context) -> Outcome[Gate]:
        self._meet(f"{state.name} again", at)
        return await super().second(state, at)

    async def undo(self, state: Gate, at: Context) -> None:
        self._meet(f"undo {state.name}", at)
        await super().undo(state, at)

    def _meet(self, run: str, at: Context) -> None:
        self.attempts.append(at.live.attempt)
        left = self.errors.get(run)
        if left:
            self.ran.append(f"{run} failed")
            raise left.pop(0)


def troubled(
    scenario: Callable[[Office, Trouble], Awaitable[None]],
    limits: Limits = LIMITS,
    deadline_ms: int = 60_000,
) -> None:
    async def main(loop: SimLoop) -> None:
        gates = Trouble()
        kinds = gates.kinds()
        steps = kinds["gate"].steps
        first = replace(steps["first"], to=frozenset({"first", "second"}))
        kinds["gate"] = replace(
            kinds["gate"], steps={**steps, "first": first}, deadline_ms=deadline_ms
        )
        cluster = Cluster(loop, kinds, limits)
        fence = await cluster.bootstrap()
        await with_two_tables_and_dead_node(cluster, fence)
        server = await cluster.started()
        await scenario(Office(cluster, server, fence, gates), gates)

    run(main, 1)
