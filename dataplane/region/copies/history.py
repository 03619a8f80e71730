"""The positions of a retained log, as epochs and the place where each begins (P5.11). Pure.

Records with one position are one record, and all before them are the same too. So two logs need
only compare their epochs to find the last position that they have in common.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from dataplane.log.records import LogPosition

START = LogPosition(0, 0)
"""The position before the first record of a region."""


class EpochRun(NamedTuple):
    """Records of one epoch that follow each other."""

    epoch: int
    first: int
    """The sequence of the first."""


@dataclass(frozen=True, slots=True)
class LogHistory:
    """Invariant: sequences rise by one from `base`; runs rise in epoch and in their first sequence,
    and the first run begins right behind `base`."""

    base: LogPosition = START
    """The last position that the log does not retain: it and all before it are in files. Epoch 0
    with a sequence: its epoch is not known, so it is like no other."""
    runs: tuple[EpochRun, ...] = ()
    end: int = 0
    """The sequence of the last record; that of `base` if there is none behind it."""

    def __post_init__(self) -> None:
        firsts = [run.first for run in self.runs]
        epochs = [self.base.epoch, *(run.epoch for run in self.runs)]
        assert epochs == sorted(epochs), self
        assert firsts == sorted(set(firsts)), self
        assert firsts[:1] == [self.base.sequence + 1][: len(firsts)], self
        assert self.end >= max([self.base.sequence, *firsts]), self
        assert self.runs or self.end == self.base.sequence, self

    @property
    def last(self) -> LogPosition:
        return LogPosition(self._epoch_at(self.end), self.end)

    def at(self, sequence: int) -> LogPosition | None:
        """The position with that sequence; None: the log does not tell."""
        if not self.base.sequence <= sequence <= self.end:
            return None
        return LogPosition(self._epoch_at(sequence), sequence)

    def follows(self, position: LogPosition) -> bool:
        """Whether a record with that position may come next."""
        return position.sequence == self.end + 1 and position.epoch >= max(1, self.last.epoch)

    def extended(self, position: LogPosition) -> "LogHistory":
        """The history with one more record, which `follows`."""
        assert self.follows(position), (self, position)
        runs = self.runs
        if not runs or runs[-1].epoch < position.epoch:
            runs = (*runs, EpochRun(*position))
        return replace(self, runs=runs, end=position.sequence)

    def with_run(self, epoch: int, first: int, last: int) -> "LogHistory":
        """The history with the records of one epoch that have these sequences. Where they do not
        follow, all before them is taken for flushed, at a position that is not known."""
        if not self.follows(LogPosition(epoch, first)):
            before = first - 1
            return LogHistory(LogPosition(0, before), (EpochRun(epoch, first),), last)
        return replace(self.extended(LogPosition(epoch, first)), end=last)

    def cut_to(self, sequence: int) -> "LogHistory":
        """The history without the records behind that sequence, which it has."""
        assert self.at(sequence) is not None, (self, sequence)
        runs = tuple(run for run in self.runs if run.first <= sequence)
        return replace(self, runs=runs, end=sequence)

    def flushed_to(self, sequence: int) -> "LogHistory":
        """The history once records up to that sequence, which it has, are retained no more."""
        base = self.at(sequence)
        assert base is not None, (self, sequence)
        following = sequence + 1
        ends = [*(run.first - 1 for run in self.runs[1:]), self.end]
        runs = [
            EpochRun(run.epoch, max(run.first, following))
            for run, end in zip(self.runs, ends, strict=False)
            if end >= following
        ]
        return replace(self, base=base, runs=tuple(runs))

    def common_with(self, other: "LogHistory") -> LogPosition | None:
        """The last position of both. None: they have none that both can tell, so that a log cannot
        bring the one up to the other."""
        sequence = min(self.end, other.end)
        least = max(self.base.sequence, other.base.sequence)
        while sequence >= least:
            mine, theirs = self.at(sequence), other.at(sequence)
            assert mine is not None
            assert theirs is not None
            if mine == theirs and (mine.epoch > 0 or mine == START):
                return mine
            newer = self if mine.epoch >= theirs.epoch else other
            sequence = newer._first_at(sequence) - 1
        return None

    def _epoch_at(self, sequence: int) -> int:
        epochs = [run.epoch for run in self.runs if run.first <= sequence]
        return epochs[-1] if epochs else self.base.epoch

    def _first_at(self, sequence: int) -> int:
        """The first sequence of the run that has *sequence*; of `base`, its own."""
        firsts = [run.first for run in self.runs if run.first <= sequence]
        return firsts[-1] if firsts else self.base.sequence
