"""The memory of applied statements, which makes sending a batch again harmless.

A statement bears the time at which its first sender made it. It is remembered while a copy of it
may be accepted: for a window, and for the allowance by which clocks may differ. Whatever clocks
say, no statement is applied twice: `forgotten_ms` is the latest time of a statement that was
forgotten, it never falls, and a copy that is not later is refused. It is durable in each manifest,
and what it covers since the newest manifest is still in files or the log. Clocks decide only what
is refused too early or too late (docs/decisions/0114).

Only applied batches are remembered: a refused one wrote nothing and is judged again. Pure.
"""

from dataclasses import dataclass

from dataplane.region.log.logged_group import LoggedGroup
from dataplane.region.memory.statement_table import (
    RECORDS_MAX,
    Remembered,
    StatementTable,
    digest_of,
)
from metasrv_base.errors import Conflict

TABLES_PER_WINDOW = 8
"""A table is forgotten as a whole: ids stay longer than they must, by this part of a window."""


@dataclass(frozen=True, slots=True)
class StatementWindow:
    window_ms: int = 120_000
    """Time for which a statement is remembered: at least twice that for which programs send it."""
    drift_ms: int = 5_000
    """The most by which the clocks of a sender and of a node may differ."""

    @property
    def age_ms_max(self) -> int:
        return self.window_ms + self.drift_ms

    def latest_possible_ms(self, now_ms: int) -> int:
        """The latest time of a statement that any node may have applied until now: the clock of its
        sender may be ahead of that node's, and that one of ours."""
        return now_ms + 2 * self.drift_ms


class StatementMemory:
    """One thread judges and adds; another may forget at the same time."""

    def __init__(self, window: StatementWindow, forgotten_ms: int = 0) -> None:
        self._window = window
        self.forgotten_ms = forgotten_ms
        """The latest time of a statement that was forgotten; 0: none was."""
        self.tables: tuple[StatementTable, ...] = ()
        """Oldest first; statements are added to the last."""

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def size_bytes(self) -> int:
        return sum(table.size_bytes for table in self.tables)

    @property
    def latest_ms(self) -> int:
        """The latest time of a statement that is remembered or forgotten; 0: there is none."""
        return max(self.forgotten_ms, *(table.latest_ms for table in self.tables), 0)

    def find(self, statement_id: str) -> Remembered | None:
        return self._find(digest_of(statement_id))

    def _find(self, digest: bytes) -> Remembered | None:
        answers = (table.find(digest) for table in reversed(self.tables))
        return next((answer for answer in answers if answer is not None), None)

    def time_of(self, sent_ms: int | None, now_ms: int) -> int:
        """The time under which to remember a statement that `find` does not know.

        Without a time of its own it has that of its arrival. Raises Conflict `clock-skew` for a
        time that is yet to come, `statement-too-old` for one outside the window. `is_forgotten`
        then says whether an earlier copy may have been applied: what is later than all that was
        forgotten would be known.
        """
        if sent_ms is None:
            return max(now_ms, self.forgotten_ms + 1)
        if sent_ms > now_ms + self._window.drift_ms:
            raise Conflict(
                "clock-skew", sent_ms=sent_ms, now_ms=now_ms, allowed_ms=self._window.drift_ms
            )
        is_forgotten = sent_ms <= self.forgotten_ms
        if is_forgotten or sent_ms < now_ms - self._window.age_ms_max:
            raise Conflict(
                "statement-too-old",
                sent_ms=sent_ms,
                now_ms=now_ms,
                window_ms=self._window.window_ms,
                is_forgotten=is_forgotten,
            )
        return sent_ms

    def add(self, statement_id: str, statement: Remembered) -> None:
        """One that `find` does not know."""
        self._add(digest_of(statement_id), statement)

    def add_again(self, statement_id: str, statement: Remembered) -> None:
        """One that a file or another log may have told of already."""
        digest = digest_of(statement_id)
        if self._find(digest) is None:
            self._add(digest, statement)

    def _add(self, digest: bytes, statement: Remembered) -> None:
        if not self.tables or self._is_over(self.tables[-1], statement.sent_ms):
            self.tables = (*self.tables, StatementTable())
        self.tables[-1].add(digest, statement)

    def load(self, records: bytes) -> None:
        """Adds records as a table of their own."""
        self.tables = (*self.tables, StatementTable(records))

    def forget(self, now_ms: int) -> bool:
        """Drops tables all of whose statements are outside the window. False: there is none."""
        oldest_ms = now_ms - self._window.age_ms_max
        over = [table for table in self.tables if table.latest_ms < oldest_ms]
        if not over:
            return False
        # In this order: whoever does not find a statement any more finds it forgotten.
        self.forgotten_ms = max(self.forgotten_ms, *(table.latest_ms for table in over))
        self.tables = tuple(table for table in self.tables if table.latest_ms >= oldest_ms)
        return True

    def _is_over(self, table: StatementTable, sent_ms: int) -> bool:
        span_ms = self._window.window_ms // TABLES_PER_WINDOW
        return len(table) >= RECORDS_MAX or sent_ms > table.first_ms + span_ms


def remember(group: LoggedGroup, memory: StatementMemory) -> None:
    """A group that was written now."""
    for statement in group.statements:
        memory.add(statement.id, Remembered(statement.version, statement.sent_ms, statement.rows))


def recall(group: LoggedGroup, memory: StatementMemory, now_ms: int) -> None:
    """A group of a log. Statements that were logged without a time count as made now."""
    for statement in group.statements:
        sent_ms = statement.sent_ms or memory.time_of(None, now_ms)
        memory.add_again(statement.id, Remembered(statement.version, sent_ms, statement.rows))
