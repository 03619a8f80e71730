"""Reads of copies in random schedules: leaders tell positions with their requests for promises.

Each copy applies what it has at some later time. A read at a copy that is answered although a row
is missing which was acknowledged longer ago than the read allows is counted as too old.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from dataplane.region.copies.staleness import AppliedLog, CommonAt, CopyStaleness
from tests.dataplane.region.copies.promise_rules import Lead, PromiseRules
from tests.dataplane.region.copies.promise_world import (
    DRIFT_PPM,
    PromiseNode,
    PromiseWorld,
    Request,
)

MAX_LAGS_MS = (300, 1_000, 3_000, 10_000)


@dataclass(frozen=True)
class StaleRules:
    """The parts of the product; a planted bug replaces one."""

    staleness: Callable[[], CopyStaleness] = CopyStaleness
    must_read: bool = True
    """A leader tells a position only while it may read."""
    counts_receipt: bool = False
    """A copy counts from the arrival of what it is told."""


@dataclass(eq=False)
class TellingRequest(Request):
    told: tuple[int, int, int] | None = None
    """Epoch, rows, and the time of the copy that is repeated."""
    answered_ms: int = 0


@dataclass
class CopyState:
    staleness: CopyStaleness
    applied: AppliedLog = field(default_factory=lambda: AppliedLog(1, 0))


@dataclass
class StaleWorld(PromiseWorld):
    stale_rules: StaleRules = field(default_factory=StaleRules)
    copies: dict[int, CopyState] = field(default_factory=dict)
    answers: dict[tuple[int, int], int] = field(default_factory=dict)
    """(leader, copy) -> the time of the last answer, by the copy's clock."""
    acked_at: list[int] = field(default_factory=list)
    """Real times at which rows were acknowledged, in order."""
    copy_reads: int = 0
    too_old: int = 0

    def state_of(self, number: int) -> CopyState:
        return self.copies.setdefault(number, CopyState(self.stale_rules.staleness()))

    def step(self) -> None:
        if self.draw.random() < 0.3:
            self.draw.choice((self.catch_up, self.read_copy))()
        else:
            super().step()

    def ask(self) -> None:
        leading = self.leading()
        if leading is None:
            return
        node, lead = leading
        asked_ms = self.local_ms(node)
        for other in sorted(lead.required - {node.number}):
            request = TellingRequest(node.number, other, lead.epoch, asked_ms)
            request.told = self.told(node, lead, other)
            self.travelling.append(request)
            while request in self.travelling and self.draw.random() < 0.5:
                self.arrived(request)

    def told(self, node: PromiseNode, lead: Lead, copy: int) -> tuple[int, int, int] | None:
        may_read = self.serves(node) and self.is_promised(node, lead)
        answered_ms = self.answers.get((node.number, copy))
        if answered_ms is None or (self.stale_rules.must_read and not may_read):
            return None
        return lead.epoch, lead.rows, answered_ms

    def arrived(self, message: Request) -> None:
        assert isinstance(message, TellingRequest)
        was_answer, copy = message.is_answer, self.nodes[message.copy]
        super().arrived(message)
        if was_answer:
            self.answers[message.leader, message.copy] = message.answered_ms
        elif message.is_answer:
            now_ms = message.answered_ms = self.local_ms(copy)
            if message.told is not None:
                epoch, rows, as_of_ms = message.told
                as_of_ms = now_ms if self.stale_rules.counts_receipt else as_of_ms
                state = self.state_of(message.copy)
                state.staleness.tell(CommonAt(epoch, rows, as_of_ms), state.applied)

    def write(self) -> None:
        before = self.acked
        super().write()
        self.acked_at += [self.real_ms] * (self.acked - before)

    def catch_up(self) -> None:
        """A copy applies the rows that it has."""
        node = self.any_node()
        self.state_of(node.number).applied = AppliedLog(node.epoch, node.rows)

    def read_copy(self) -> None:
        node, max_lag_ms = self.any_node(), self.draw.choice(MAX_LAGS_MS)
        state = self.state_of(node.number)
        as_of_ms = state.staleness.as_of_ms(state.applied)
        if as_of_ms is None or self.local_ms(node) - as_of_ms > max_lag_ms:
            return
        self.copy_reads += 1
        real_lag_ms = max_lag_ms * 1_000_000 // (1_000_000 - DRIFT_PPM) + 2
        needed = bisect_right(self.acked_at, self.real_ms - real_lag_ms - 1)
        self.too_old += state.applied.sequence < needed


def lived(seed: int, rules: StaleRules, steps: int = 1_500) -> StaleWorld:
    """Lives until the first read that is too old, or that many steps."""
    world = StaleWorld(Random(seed), PromiseRules(), stale_rules=rules)
    world.begin(2 + seed % 3)
    for _ in range(steps):
        world.step()
        if world.too_old:
            break
    return world
