"""Views with one rule of the model off (tests/model/copies/rules.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dataplane.log.records import LogPosition
from dataplane.region.copies.copy_view import CopyView, OfferedRecord
from dataplane.region.copies.history import LogHistory
from dataplane.region.copies.leader_view import CopyName, LeaderView, RecordState
from tests.dataplane.region.copies.world import Rules

LOST = "a copy that may be promoted lacks an acknowledged row"
THIN = "one disk was lost, and with it the only copy of an acknowledged row"
STALE = "a leader answers a read without an acknowledged row"
EXPOSED = "a row is readable that can be cut back"
UNCUTTABLE = "a file holds a row that can be cut back"
OVER_BUDGET = "a copy holds more records in memory than it may"


class AcksAlone(LeaderView):
    def judge(self, sequence: int) -> RecordState:
        return super().judge(min(sequence, self.common))


class ReadsAll(CopyView):
    def heard_common(self, epoch: int, sequence: int) -> None:
        self.common = self.history.end


class TakesAll(CopyView):
    def taken(self, epoch: int, offered: Sequence[OfferedRecord], room_bytes: int) -> range:
        return super().taken(epoch, offered, 1 << 30)


class NoMinimum(LeaderView):
    @property
    def has_minimum(self) -> bool:
        return True


class MinimumAtTheOrder(LeaderView):
    def judge(self, sequence: int) -> RecordState:
        return RecordState.WAITS if sequence > self.common else RecordState.COUNTS


class CountsLearners(LeaderView):
    @property
    def has_minimum(self) -> bool:
        return len(self.required | self.members.learners) >= self.min_in_sync


class CountsOnWithoutEligible(LeaderView):
    @property
    def is_frozen(self) -> bool:
        return False


class GrowsInTheRoute(LeaderView):
    @property
    def required(self) -> frozenset[CopyName]:
        return self.members.in_sync


class TakesARequestForFailed(LeaderView):
    def appended(self, sequence: int, now_ms: int) -> None:
        self.joining = None
        super().appended(sequence, now_ms)


class AddsWithoutTheCommon(LeaderView):
    def joins_next(self, serves: bool) -> CopyName | None:
        ready = [copy for copy in self.members.learners if self.durable_at(copy) >= self.opened]
        return None if self.joining is not None or not serves else min(ready, default=None)


class ShrinksAlone(LeaderView):
    def appended(self, sequence: int, now_ms: int) -> None:
        slow = [copy for copy in self.members.in_sync if self.durable_at(copy) < self.common]
        rest = self.members.in_sync.difference(slow) | {self.name}
        self.members = replace(self.members, in_sync=rest)
        super().appended(sequence, now_ms)


class ReadsAtOnce(LeaderView):
    @property
    def may_read(self) -> bool:
        return True


class CutsNothing(CopyView):
    def cut_for(self, epoch: int, leader: LogHistory) -> LogPosition | None:
        position = super().cut_for(epoch, leader)
        return None if position is None else self.history.last


PLANTED: Mapping[str, tuple[Rules, str]] = {
    "acknowledged before every copy has it": (Rules(leader=AcksAlone), LOST),
    "readable before every copy has it": (Rules(copy=ReadsAll), EXPOSED),
    "flushed before every copy has it": (Rules(copy=ReadsAll), UNCUTTABLE),
    "a copy takes records beyond its budget": (Rules(copy=TakesAll), OVER_BUDGET),
    "acknowledged on fewer disks than the minimum": (Rules(leader=NoMinimum), THIN),
    "a minimum that is judged at the order alone": (Rules(leader=MinimumAtTheOrder), THIN),
    "a learner counted": (Rules(leader=CountsLearners), THIN),
    "a common position that goes on without eligible copies": (
        Rules(leader=CountsOnWithoutEligible),
        EXPOSED,
    ),
    "a set that grows in the route first": (Rules(leader=GrowsInTheRoute), LOST),
    "a request that is late taken for failed": (Rules(leader=TakesARequestForFailed), LOST),
    "a learner added before it has caught up": (Rules(leader=AddsWithoutTheCommon), LOST),
    "a set that shrinks at the leader alone": (Rules(leader=ShrinksAlone), LOST),
    "a promoted copy that does not cut back": (Rules(copy=CutsNothing), LOST),
    "read before what was opened is common": (Rules(leader=ReadsAtOnce), STALE),
}
