"""Two procedures that want one lock, while the one that holds it meets with trouble."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from keys.model.records import ProcedureOutcome
from metasrv_base.errors import MetaError
from procedures.context import Context
from procedures.machine import Outcome as StepOutcome
from tests.fakes.cluster import Cluster
from tests.procedures.harness.gates import Gate, Gates
from tests.procedures.harness.leader_office import Office
from tests.sim.loop import SimLoop, run

MOMENTS = ("first step", "second step", "parked", "undoing")
LOCK = "table:1"


class Watched(Gates):
    """Gates that see who passes: of two procedures with one lock, one at a time, to its end."""

    def __init__(self, cluster: list[Cluster]) -> None:
        super().__init__()
        self.cluster = cluster
        self.begun: set[str] = set()
        self.wrong: list[str] = []

    def _enter(self, state: Gate, at: Context) -> None:
        living = set(self.cluster[0].living()) if self.cluster else set()
        for other in self.begun & living - {at.procedure}:
            self.wrong.append(f"{state.name} runs while {other} holds {LOCK}")
        self.begun.add(at.procedure)

    async def first(self, state: Gate, at: Context) -> StepOutcome[Gate]:
        self._enter(state, at)
        return await super().first(state, at)

    async def second(self, state: Gate, at: Context) -> StepOutcome[Gate]:
        self._enter(state, at)
        return await super().second(state, at)

    async def undo(self, state: Gate, at: Context) -> None:
        self._enter(state, at)
        await super().undo(state, at)


@dataclass(frozen=True)
class Contest:
    """Where the holder is when it happens, and whether its leader dies then."""

    moment: str
    dies: bool

    @property
    def is_sound(self) -> bool:
        """Nobody dies, and no step fails."""
        return not self.dies and self.moment in ("first step", "second step")


def contests() -> Iterator[Contest]:
    return (Contest(moment, dies) for moment, dies in product(MOMENTS, (False, True)))


def contend(contest: Contest, on_takeover: Callable[[], None] = lambda: None) -> list[str]:
    """Returns the faults: two procedures at once, or one that never ends."""
    return run(lambda loop: _contend(loop, contest, on_takeover), 1)


async def _contend(loop: SimLoop, contest: Contest, on_takeover: Callable[[], None]) -> list[str]:
    here: list[Cluster] = []
    gates = Watched(here)
    cluster = Cluster(loop, gates.kinds(), on_takeover=on_takeover)
    here.append(cluster)
    fence = await cluster.bootstrap()
    at = Office(cluster, await cluster.started(), fence, gates)
    if contest.moment == "parked":
        gates.fails.add("a")
    await at.submit("a", LOCK)
    await at.submit("b", LOCK)
    if contest.moment == "second step":
        at.let("a")
    await at.settle()
    if contest.moment == "undoing":
        await _cancel(at)
        await at.settle()
    if contest.dies:
        await at.next_leader()
        await at.settle()
    if "b" in gates.ran:
        return ["b did not wait", *gates.wrong]
    if contest.moment == "parked":
        await _cancel(at)
    at.let("a", "a again", "undo a", "b", "b again")
    if not await cluster.quiet(limit_ms=60_000):
        return [*gates.wrong, f"never ends: {cluster.living()}"]
    came = (await at.end("b")).outcome is ProcedureOutcome.SUCCEEDED
    return gates.wrong if came else [*gates.wrong, "b did not come after"]


async def _cancel(at: Office) -> None:
    """Cancels *a*; the answer to the client is not examined here."""
    with suppress(MetaError):
        await at.cancel("a")
