"""A leader that asks its copies for promises, with copies that die and a process that stands still:
which copies it has leave the set, and when."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from dataplane.region.copies.leader_view import (
    LAG_MS_MAX,
    SILENT_MS_MAX,
    CopyName,
    CopySet,
    LeaderView,
    LeaveReason,
    OwnLog,
)
from dataplane.region.copies.promises import ASK_MS, AwakeTime

STEP_MS = 50
TRAVEL_MS_MAX = 300
PACE_MS = 500
"""The pace at which a leader asks for changes of its set."""
THROWN_OUT = "a copy that answers is to leave"
STAYS = "a copy that is dead, and that no write needs, stays in the set"
TOO_FEW = "a copy leaves soon although too few are left for writes"
LEADER, *COPIES = (CopyName(f"dn-{number}", f"/disks/{number}/1") for number in range(4))


@dataclass(frozen=True)
class SilenceRules:
    """The parts of the product; a planted bug replaces one."""

    view: type[LeaderView] = LeaderView
    clock: Callable[[Callable[[], int]], AwakeTime] = AwakeTime


@dataclass
class SilenceWorld:
    draw: Random
    rules: SilenceRules
    now_ms: int = 1_000_000
    dead: dict[CopyName, int] = field(default_factory=dict)
    """When each died."""
    answers: list[tuple[int, CopyName]] = field(default_factory=list)
    """Answers that travel, with the time at which they arrive."""
    stood_ms: int = 0
    """When the leader's process last stood still."""
    left: list[LeaveReason] = field(default_factory=list)
    stands: int = 0

    def begin(self) -> None:
        count = self.draw.randint(2, 3)
        self.awake = self.rules.clock(lambda: self.now_ms)
        in_sync, learners = frozenset(COPIES[:count]), frozenset(COPIES[count:])
        members = CopySet(1, 2, in_sync | {LEADER}, learners)
        minimum = self.draw.randint(1, count + 1)
        self.view = self.rules.view.open(
            LEADER, members, minimum, OwnLog(0, 0), self.awake.now_ms()
        )
        for copy in COPIES:
            self.view.acknowledged(copy, 2, 0, self.awake.now_ms())

    def step(self, number: int) -> str | None:
        self.now_ms += STEP_MS
        if self.draw.random() < 0.002:
            self.stand_still()
        if self.draw.random() < 0.002:
            self.die()
        if number % (ASK_MS // STEP_MS) == 0:
            self.ask()
        for answer in [each for each in self.answers if each[0] <= self.now_ms]:
            self.answers.remove(answer)
            self.view.note_answer(answer[1], self.awake.now_ms())
        if number % (PACE_MS // STEP_MS) == self.draw.randrange(3):
            return self.change_set()
        return self.fault_of_dead()

    def stand_still(self) -> None:
        """All that was on its way is lost, and nobody is asked."""
        self.now_ms += self.draw.choice((1_000, 3_000, 10_000, 60_000))
        self.stood_ms, self.stands = self.now_ms, self.stands + 1
        self.answers.clear()

    def die(self) -> None:
        living = [copy for copy in COPIES if copy not in self.dead]
        if len(living) > 1:
            self.dead[self.draw.choice(living)] = self.now_ms

    def ask(self) -> None:
        self.awake.now_ms()
        for copy in sorted(self.view.required - {LEADER}):
            if copy not in self.dead:
                arrives_ms = self.now_ms + self.draw.randrange(TRAVEL_MS_MAX)
                self.answers.append((arrives_ms, copy))

    def change_set(self) -> str | None:
        members, now_ms = self.view.members, self.awake.now_ms()
        for copy, reason in self.view.leaves(now_ms).items():
            if copy not in self.dead:
                return THROWN_OUT
            rest = members.in_sync - {copy}
            if reason is LeaveReason.SILENT and len(rest) < self.view.min_in_sync:
                return TOO_FEW
            self.left.append(reason)
            self.read_route(rest, members.learners | {copy})
            return None
        copy_to_join = self.view.joins_next(serves=self.draw.random() < 0.05)
        if copy_to_join is not None and copy_to_join not in self.dead:
            self.view.join(copy_to_join, now_ms)
            self.read_route(members.in_sync | {copy_to_join}, members.learners - {copy_to_join})
        return None

    def read_route(self, in_sync: frozenset[CopyName], learners: frozenset[CopyName]) -> None:
        version = self.view.members.version + 1
        self.view.read_route(CopySet(version, 2, in_sync, learners), self.awake.now_ms())

    def fault_of_dead(self) -> str | None:
        """A dead copy leaves within the time of a promise, a pace for each that leaves before it,
        and what was counted as awake; a slow one's time if all are needed."""
        members = self.view.members.in_sync
        dead = members & self.dead.keys()
        is_needed = len(members - dead) < self.view.min_in_sync
        limit_ms = (LAG_MS_MAX if is_needed else SILENT_MS_MAX) + 6 * PACE_MS
        for copy in dead:
            if self.now_ms - max(self.dead[copy], self.stood_ms) > limit_ms:
                return STAYS
        return None


def lived(seed: int, rules: SilenceRules, steps: int = 2_000) -> tuple[SilenceWorld, str | None]:
    """Lives until the first fault, or that many steps."""
    world = SilenceWorld(Random(seed), rules)
    world.begin()
    for number in range(steps):
        fault = world.step(number)
        if fault is not None:
            return world, fault
    return world, None
