"""The view of a copy that follows a leader: which records it takes, and what it cuts. Pure.

P3.5, P5.9 and P5.11 of docs/protocols.md. The caller makes durable what the view decides, and only
then tells the view.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.log.records import LogPosition
from dataplane.region.copies.history import LogHistory
from metasrv_base.errors import Conflict, Corrupt


@dataclass(frozen=True, slots=True)
class OfferedRecord:
    """A record that a leader sends."""

    position: LogPosition
    bytes: int


@dataclass(slots=True)
class CopyView:
    """Invariant: `common` never falls but by a restart, and is at least what files hold."""

    epoch: int
    """The highest that was followed or led; on disk."""
    history: LogHistory
    """The durable log."""
    common: int
    """The highest sequence of which the copy knows that every required copy has it. Behind it
    nothing is readable here, flushed, merged or handed to Spark."""

    @classmethod
    def opened(cls, epoch: int, history: LogHistory) -> "CopyView":
        """A copy that starts: it knows of what is in files that it is common, and of nothing
        else."""
        return cls(epoch, history, history.base.sequence)

    def must_obey(self, epoch: int) -> None:
        """Raises Conflict `stale-epoch` for a leader of an epoch below the highest followed."""
        if epoch < self.epoch:
            raise Conflict("stale-epoch", epoch=self.epoch, found=epoch)

    def cut_for(self, epoch: int, leader: LogHistory) -> LogPosition | None:
        """The position behind which the log is to be cut before the copy follows the leader of a
        new epoch, whose log has that history. None: there is none, and only files can bring this
        copy up. Raises as `must_obey`, and Corrupt where the cut would take what was common."""
        self.must_obey(epoch)
        assert epoch > self.epoch, "a log is cut once in an epoch, before it counts"
        position = self.history.common_with(leader)
        if position is not None and position.sequence < self.common:
            raise Corrupt(common=self.common, cut=position.sequence, epoch=epoch)
        return position

    def followed(self, epoch: int, cut: LogPosition) -> None:
        """The epoch and the cut are durable."""
        self.must_obey(epoch)
        self.history = self.history.cut_to(cut.sequence)
        self.epoch = epoch

    def taken(self, epoch: int, offered: Sequence[OfferedRecord], room_bytes: int) -> range:
        """The places of the records that the copy appends now: those that follow its last, as far
        as they fit in its memory budget. Those that it has are passed over, as a request that is
        sent again has them; behind a gap it takes none.

        Raises Conflict `stale-epoch`, and Corrupt for a record that contradicts one of the log.
        """
        self.must_obey(epoch)
        assert epoch == self.epoch, "a copy cuts its log before it takes records of a new epoch"
        history, first = self.history, 0
        while first < len(offered) and offered[first].position.sequence <= history.end:
            position = offered[first].position
            if history.at(position.sequence) not in (position, None):
                raise Corrupt(found=list(position), end=history.end, epoch=epoch)
            first += 1
        end = first
        for record in offered[first:]:
            room_bytes -= record.bytes
            if room_bytes < 0 or not history.follows(record.position):
                break
            if record.position.epoch > epoch:
                raise Corrupt(found=list(record.position), epoch=epoch)
            history = history.extended(record.position)
            end += 1
        return range(first, end)

    def appended(self, positions: Sequence[LogPosition]) -> None:
        """These records are durable."""
        for position in positions:
            self.history = self.history.extended(position)

    def heard_common(self, epoch: int, sequence: int) -> None:
        """The leader of that epoch said which records every copy that it requires has: of those,
        the ones that are in this log count."""
        self.must_obey(epoch)
        assert epoch == self.epoch, "what is common to a new epoch is not known before the cut"
        self.common = max(self.common, min(sequence, self.history.end))

    def flushed(self, sequence: int) -> None:
        """Files have everything up to that sequence, and the log need not retain it."""
        assert sequence <= self.common, "only what is common is flushed (P5.9)"
        self.history = self.history.flushed_to(sequence)
