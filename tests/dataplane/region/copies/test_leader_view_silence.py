"""Dead copies leave the set soon, and copies that answer stay, also when the leader stood still."""

from collections.abc import Mapping

import pytest

from dataplane.region.copies.leader_view import (
    LAG_MS_MAX,
    SILENT_MS_MAX,
    CopyName,
    LeaderView,
    LeaveReason,
)
from dataplane.region.copies.promises import ASK_MS, STANDSTILL_MS, AwakeTime
from tests.dataplane.region.copies.silence_world import (
    STAYS,
    THROWN_OUT,
    TOO_FEW,
    SilenceRules,
    lived,
)
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.slow

SEEDS = 100
PLANTED_SEEDS = 60


class CountsStandstill(AwakeTime):
    def now_ms(self) -> int:
        return self._mono_ms()


class SlowAlone(LeaderView):
    def leaves(self, now_ms: int) -> Mapping[CopyName, LeaveReason]:
        leaving = super().leaves(now_ms - LAG_MS_MAX + SILENT_MS_MAX)
        return {copy: reason for copy, reason in leaving.items() if copy in self.members.in_sync}


class HearsRecordsAlone(LeaderView):
    def note_answer(self, copy: CopyName, now_ms: int) -> None:
        pass


class NeedsNobody(LeaderView):
    def leaves(self, now_ms: int) -> Mapping[CopyName, LeaveReason]:
        minimum, self.min_in_sync = self.min_in_sync, 1
        leaving = super().leaves(now_ms)
        self.min_in_sync = minimum
        return leaving


class JoinsSilent(LeaderView):
    def join(self, copy: CopyName, now_ms: int) -> int:
        heard_ms = self._copies[copy].heard_ms
        version = super().join(copy, now_ms)
        self._copies[copy].heard_ms = heard_ms
        return version


PLANTED: Mapping[str, tuple[SilenceRules, str]] = {
    "a leader that counts the time in which it stood still": (
        SilenceRules(clock=CountsStandstill),
        THROWN_OUT,
    ),
    "a dead copy that leaves as late as a slow one": (SilenceRules(view=SlowAlone), STAYS),
    "promises that do not count as an answer": (SilenceRules(view=HearsRecordsAlone), THROWN_OUT),
    "a silent copy that leaves below the minimum": (SilenceRules(view=NeedsNobody), TOO_FEW),
    "a copy that joins with the silence of a learner": (SilenceRules(view=JoinsSilent), THROWN_OUT),
}


def test_given_random_deaths_and_standstills_then_the_dead_leave_soon_and_nobody_else() -> None:
    left, stands = [], 0
    for seed in range(SEEDS):
        world, fault = lived(seed, SilenceRules())
        assert fault is None, (seed, fault)
        left += world.left
        stands += world.stands

    assert left.count(LeaveReason.SILENT) > SEEDS, "or nothing of it was tried"
    assert left.count(LeaveReason.SILENT_FOR_LONG) > SEEDS // 10
    assert stands > SEEDS


@pytest.mark.parametrize("name", PLANTED)
def test_given_a_planted_bug_of_silence_when_schedules_are_drawn_then_its_fault_is_found(
    name: str,
) -> None:
    rules, fault = PLANTED[name]

    assert any(lived(seed, rules)[1] == fault for seed in range(PLANTED_SEEDS)), name


def test_given_a_process_that_stands_still_then_that_time_is_not_counted() -> None:
    clock = FakeClock(now_ms=70_000)
    awake = AwakeTime(clock.mono_ms)
    clock.advance(ASK_MS)
    assert awake.now_ms() == 70_000 + ASK_MS

    clock.advance(60_000)

    assert awake.now_ms() == 70_000 + ASK_MS + STANDSTILL_MS
    assert awake.now_ms() == 70_000 + ASK_MS + STANDSTILL_MS
