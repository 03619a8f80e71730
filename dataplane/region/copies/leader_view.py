"""The view of a leader of a region with copies: which copies it requires, and what counts. Pure.

P5.8 to P5.12 of docs/protocols.md; rules have the names of the model (tests/model/copies/rules.py).
Times are milliseconds during which this process ran (`AwakeTime`): a leader that stood still
has heard nobody meanwhile.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from metasrv_base.errors import Conflict

LAG_MS_MAX = 10_000
"""The time for which a required copy may make no progress, while it lacks records, before it is to
leave the set."""
SILENT_MS_MAX = 2_000
"""The time for which a required copy may answer nothing, neither records nor requests for promises,
before it is to leave the set: its promise has ended then, so no read is answered either."""
NOTHING = -1


class LeaveReason(StrEnum):
    """The reason why a copy is to leave the set."""

    SILENT = f"no answer for {SILENT_MS_MAX // 1_000} s"
    SILENT_FOR_LONG = f"no answer for {LAG_MS_MAX // 1_000} s"
    LOST = "it lacks records that it had"
    SLOW = f"no progress for {LAG_MS_MAX // 1_000} s"


class CopyName(NamedTuple):
    """A copy is a root, not a node: a disk that was replaced is another copy."""

    node: str
    root: str


@dataclass(frozen=True, slots=True)
class CopySet:
    """The copies of a region as a version of its route names them."""

    version: int
    """Rises with each change of the route; a transaction on it compares this."""
    epoch: int
    in_sync: frozenset[CopyName]
    """The leader included."""
    learners: frozenset[CopyName] = frozenset()
    eligible: frozenset[CopyName] = frozenset()
    """Learners that left the set when it was below the minimum: they may lead next."""


class OwnLog(NamedTuple):
    """The log with which a copy opens its epoch, as sequences."""

    end: int
    common: int
    """The highest that it knew as common before: at least what its files hold."""


class RecordState(StrEnum):
    """The state of a record that a leader has ordered."""

    WAITS = "waits"
    """A required copy is not known to have it."""
    COUNTS = "counts"
    """The record is acknowledged and readable."""
    TOO_FEW = "too few"
    """All required copies have it, and the set has fewer than `min_in_sync`."""


@dataclass(slots=True)
class CopyProgress:
    """The acknowledgements of a copy in this epoch."""

    durable: int = NOTHING
    """The highest sequence that it has durably. NOTHING: it has not followed this epoch yet."""
    moved_ms: int = 0
    """The time of the last progress, or at which it last had everything."""
    heard_ms: int = 0
    """The time of the last answer, or since which it is required."""


@dataclass(slots=True)
class LeaderView:
    """Invariant: `required` holds the set of the route of this epoch, at any time (P5.10);
    `common` never falls."""

    name: CopyName
    epoch: int
    members: CopySet
    """The set of copies, as last read from the route."""
    min_in_sync: int
    opened: int
    """The last sequence of the log when this epoch was opened."""
    end: int
    """The last sequence that is durable in the own log."""
    common: int
    """The highest sequence that each required copy has acknowledged; before the first
    acknowledgement, what this copy knew as common before it led."""
    joining: CopyName | None = None
    """A learner that the leader has asked to add to the set."""
    _asked_version: int = 0
    """The version of the route that this request was computed from."""
    _leave_version: int = NOTHING
    """The version of the route at which a copy was expected to leave last."""
    _copies: dict[CopyName, CopyProgress] = field(default_factory=dict)
    _left: set[CopyName] = field(default_factory=set)
    """Copies that have followed this epoch, and that the route names no more."""

    @classmethod
    def open(
        cls, name: CopyName, members: CopySet, min_in_sync: int, log: OwnLog, now_ms: int
    ) -> "LeaderView":
        """Opens the epoch of the route. A leader that has started again opens a new epoch too, so
        that no position is given twice."""
        assert name in members.in_sync, "only a copy of the set is promoted"
        assert log.common <= log.end
        view = cls(name, members.epoch, members, min_in_sync, log.end, log.end, log.common)
        view._conclude(now_ms)
        return view

    # -- the set

    @property
    def required(self) -> frozenset[CopyName]:
        """Copies that must have a record before it counts, the leader included."""
        joining = () if self.joining is None else (self.joining,)
        return self.members.in_sync.union(joining)

    @property
    def receivers(self) -> frozenset[CopyName]:
        """The copies that records are sent to: required ones and learners."""
        return (self.required | self.members.learners) - {self.name}

    @property
    def following(self) -> frozenset[CopyName]:
        """The other copies that have followed this epoch, those that have left the region too: none
        of them leads an older one any more."""
        here = (name for name in self._copies if self.durable_at(name) != NOTHING)
        return frozenset({*here, *self._left})

    @property
    def has_minimum(self) -> bool:
        """Whether the set has enough copies, as the route that was read last names it. Learners do
        not count, nor a copy that was asked to join: nobody promotes it before the route says so
        (P5.12)."""
        return len(self.members.in_sync) >= self.min_in_sync

    @property
    def may_be_alone(self) -> bool:
        """Whether the route may name nobody else in the set: as it was read last, or by a leave
        that is expected and not known to be over. A copy that joins or leaves is required, but
        whoever fails over a leader that is alone waits for its lease, and for no promise (P4.5)."""
        others = len(self.members.in_sync) - 1
        return others == 0 or (others == 1 and self._leave_version == self.members.version)

    @property
    def is_frozen(self) -> bool:
        """Whether `common` stands still: below the minimum an eligible copy may be promoted, and
        nobody requires it to have what is ordered since it left (P5.12)."""
        return bool(self.members.eligible) and not self.has_minimum

    def may_be_eligible(self, copy: CopyName) -> bool:
        """Whether a copy that leaves the set now has all that counts, and what this epoch was
        opened with counts: else a leader that is left alone could read nothing while it is
        frozen."""
        return self.may_read and self.durable_at(copy) >= self.common

    def read_route(self, members: CopySet, now_ms: int) -> None:
        """Takes a committed version of the route; an older one than the last changes nothing.

        Only by this does the leader require fewer copies. A copy that was asked to join is required
        until a later version lacks it: the request compared the version that it was computed from,
        so it has failed then. Raises Conflict `stale-epoch` for the route of another leader.
        """
        if members.epoch > self.epoch:
            raise Conflict("stale-epoch", epoch=members.epoch, found=self.epoch)
        if members.epoch < self.epoch or members.version <= self.members.version:
            return
        before = self.required
        self.members = members
        if members.version > self._asked_version:
            self.joining = None
        self._conclude(now_ms)
        self._require(self.required - before, now_ms)

    def joins_next(self, serves: bool) -> CopyName | None:
        """A learner that may be added to the set now: it has what is common, and what this epoch
        was opened with, since a predecessor may have acknowledged all of that. None: no learner is
        ready, or one is being added.

        *serves*: whether the own last promise of this copy has ended. Before that it adds nobody:
        who joins has promised nothing to the predecessor, may be promoted next, and would not wait
        (P4.5)."""
        if self.joining is not None or not serves:
            return None
        least = max(self.common, self.opened)
        ready = [copy for copy in self.members.learners if self.durable_at(copy) >= least]
        return min(ready, default=None)

    def ask_again(self, now_ms: int) -> bool:
        """Forgets the acknowledgements of learners that have answered nothing for SILENT_MS_MAX:
        their disks may be gone since, so they are asked where their logs end before they join.
        Returns whether there are any."""
        silent = [
            copy
            for copy in self.members.learners - self.required
            if self.durable_at(copy) != NOTHING
            and now_ms - self._copies[copy].heard_ms >= SILENT_MS_MAX
        ]
        for copy in silent:
            self._copies[copy] = CopyProgress(moved_ms=now_ms, heard_ms=now_ms)
        return bool(silent)

    def join(self, copy: CopyName, now_ms: int) -> int:
        """Requires a copy of `joins_next` from now on. Returns the version of the route that the
        request to add it must compare."""
        assert self.joining is None
        assert copy in self.members.learners
        self.joining, self._asked_version = copy, self.members.version
        self._conclude(now_ms)
        self._require({copy}, now_ms)
        return self._asked_version

    def expect_leave(self) -> None:
        """Notes that a copy may leave the set without further word: this leader asks for that, or
        metasrv is about to remove the copy."""
        self._leave_version = self.members.version

    def note_answer(self, copy: CopyName, now_ms: int) -> None:
        """A copy has answered in this epoch: it has promised, or has taken records."""
        progress = self._copies.get(copy)
        if progress is not None:
            progress.heard_ms = now_ms

    def leaves(self, now_ms: int) -> Mapping[CopyName, LeaveReason]:
        """Copies that are to leave the set, through the route.

        One that lacks what counts leaves at once: it must not lead next. It comes back as a
        learner.

        One that answers nothing leaves after SILENT_MS_MAX if those that answer are enough to take
        writes. If they are not, its end would bring no write, and perhaps it is this leader that is
        cut off: a copy that has left could not lead next. So it stays for LAG_MS_MAX, as does one
        that answers, and lacks records without any progress."""
        others = sorted(self.members.in_sync - {self.name})
        silent_ms = {copy: now_ms - self._copies[copy].heard_ms for copy in others}
        silent = {copy for copy in others if silent_ms[copy] >= SILENT_MS_MAX}
        leaving = dict[CopyName, LeaveReason]()
        for copy in others:
            if NOTHING < self.durable_at(copy) < self.common:
                leaving[copy] = LeaveReason.LOST
            elif copy in silent and len(self.members.in_sync - silent) >= self.min_in_sync:
                leaving[copy] = LeaveReason.SILENT
            elif silent_ms[copy] >= LAG_MS_MAX:
                leaving[copy] = LeaveReason.SILENT_FOR_LONG
            elif self._lag_ms(copy, now_ms) >= LAG_MS_MAX:
                leaving[copy] = LeaveReason.SLOW
        return leaving

    # -- records

    @property
    def may_order(self) -> bool:
        """Whether a write may be ordered; else it is refused, not attempted."""
        return self.has_minimum

    @property
    def may_read(self) -> bool:
        """Whether the common position has reached what this epoch was opened with: before that, a
        read might lack what a predecessor acknowledged (P4.5). Promises are asked for besides."""
        return self.common >= self.opened

    def appended(self, sequence: int, now_ms: int) -> None:
        """The own log is durable up to there."""
        assert sequence >= self.end
        for progress in self._copies.values():
            if progress.durable >= self.end:
                progress.moved_ms = now_ms  # it lacked nothing until now
        self.end = sequence
        self._conclude(now_ms)

    def acknowledged(self, copy: CopyName, epoch: int, sequence: int, now_ms: int) -> None:
        """A copy said what it has durably of the log of that epoch's leader. Late answers change
        nothing: one of another epoch, one that is lower, or one of a root that the route does not
        name any more."""
        if epoch != self.epoch or copy not in self.receivers:
            return
        progress = self._copies[copy]
        progress.heard_ms = now_ms
        if sequence > progress.durable:
            progress.durable, progress.moved_ms = sequence, now_ms
        self._conclude(now_ms)

    def lost(self, copy: CopyName, epoch: int, sequence: int, now_ms: int) -> None:
        """A copy said, after all its other answers, that it has less of that epoch's log than it
        had: its disk was emptied. It is sent again what it lacks; records that counted still do."""
        if epoch != self.epoch or copy not in self.receivers:
            return
        self._copies[copy] = CopyProgress(sequence, moved_ms=now_ms, heard_ms=now_ms)

    def judge(self, sequence: int) -> RecordState:
        """The state of a record; the minimum is judged here again, and not at its order alone."""
        if sequence > self.common:
            return RecordState.WAITS
        return RecordState.COUNTS if self.has_minimum else RecordState.TOO_FEW

    def lacking(self, sequence: int) -> list[CopyName]:
        """The copies that are not known to have a record for which it waits."""
        others = self.required - {self.name}
        if self.is_frozen:
            others |= self.members.eligible
        return sorted(copy for copy in others if self.durable_at(copy) < sequence)

    def durable_at(self, copy: CopyName) -> int:
        """The sequence that a copy has acknowledged; NOTHING: it has not followed this epoch."""
        progress = self._copies.get(copy)
        return NOTHING if progress is None else progress.durable

    def _lag_ms(self, copy: CopyName, now_ms: int) -> int:
        progress = self._copies[copy]
        return 0 if progress.durable >= self.end else now_ms - progress.moved_ms

    def _require(self, copies: Set[CopyName], now_ms: int) -> None:
        """Learners are asked for no promise: they have answered nothing so far."""
        for copy in copies:
            self._copies[copy].heard_ms = now_ms

    def _conclude(self, now_ms: int) -> None:
        receivers = self.receivers
        for copy in receivers - self._copies.keys():
            self._copies[copy] = CopyProgress(moved_ms=now_ms, heard_ms=now_ms)
        for copy in self._copies.keys() - receivers:
            if self._copies.pop(copy).durable != NOTHING:
                self._left.add(copy)
        if self.is_frozen:
            return
        others = [self.durable_at(copy) for copy in self.required - {self.name}]
        self.common = max(self.common, min([self.end, *others]))
