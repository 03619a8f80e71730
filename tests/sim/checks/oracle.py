"""Rows that may be read: a single-node model that knows all requests and their answers.

Acknowledged, or read once: it is there. Unknown: it may be, from the moment it was sent, for ever.
Refused: it is not, and never comes. Every write has a value of its own, so that a read names its
writer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NEVER = float("inf")
Value = str | None
"""None: no row."""


@dataclass(eq=False, slots=True)
class Written:
    """One write of one key, or of all keys of a table. Times are the loop's, in seconds."""

    value: Value
    began: float
    ended: float = NEVER
    """When it was acknowledged; NEVER: it was not, and a copy may still be on its way."""
    refused: bool = False
    read: float = NEVER
    """When it was first known to have been read; from then on it counts as acknowledged."""

    @property
    def is_sure(self) -> bool:
        return self.ended < NEVER

    @property
    def stood(self) -> float:
        """When a client knew that it stood."""
        return min(self.ended, self.read)


FIRST = Written(None, -2.0, -1.0)


@dataclass
class Rows:
    """One table, by its id."""

    keys: dict[int, list[Written]] = field(default_factory=dict)
    whole: list[Written] = field(default_factory=list)
    """Truncations."""

    def begin(self, key: int, value: Value, now: float) -> Written:
        written = Written(value, now)
        self.keys.setdefault(key, []).append(written)
        return written

    def begin_truncate(self, now: float) -> Written:
        self.whole.append(Written(None, now))
        return self.whole[-1]

    def possible(self, key: int, began: float, ended: float) -> set[Value]:
        """Returns the values that a read sent at *began* and answered at *ended* may find."""
        return {one.value for one in self.standing(key, began, ended)}

    def standing(self, key: int, began: float, ended: float) -> Iterator[Written]:
        """The writes that such a read may find."""
        written = [one for one in self._all(key) if not one.refused]
        last = max((one.began for one in written if one.stood <= began), default=-2.0)
        return (one for one in written if one.began <= ended and one.stood > last)

    def wrong(self, key: int, found: Value, began: float, ended: float) -> str | None:
        possible = self.possible(key, began, ended)
        if found in possible:
            if found is not None and began >= 0:
                self._note_read(key, found, ended)
            return None
        return f"key {key}: {found!r} was read, right: one of {sorted(map(str, possible))}"

    def taken_back(self) -> Iterator[str]:
        """Yields what was read of writes that were said not to be done."""
        for key, written in self.keys.items():
            for one in written:
                if one.refused and one.read < NEVER:
                    yield f"key {key}: {one.value!r} was read at {one.read:.3f} s, and refused"

    def _note_read(self, key: int, value: str, now: float) -> None:
        """Notes a read: no row is read that could still be lost, so it stays."""
        for one in self.keys.get(key, ()):
            if one.value == value:
                one.read = min(one.read, now)

    def _all(self, key: int) -> Iterator[Written]:
        yield FIRST
        yield from self.keys.get(key, ())
        yield from self.whole


@dataclass
class Oracle:
    tables: dict[int, Rows] = field(default_factory=dict)
    leases_hold: bool = True
    """False: clocks run apart, or failovers are forced; a read may then be of a moment ago."""
    statements: int = 0
    """Statements that were begun."""

    def rows(self, table_id: int) -> Rows:
        return self.tables.setdefault(table_id, Rows())

    def sent(self, began: float) -> float:
        """From when on a read that was sent then must know of what was acknowledged."""
        return began if self.leases_hold else -1.0

    def judge(
        self, table_id: int, found: Mapping[int, str], began: float, now: float
    ) -> Iterator[str]:
        """Yields the faults of a read of the whole table."""
        rows = self.rows(table_id)
        for key in sorted({*found, *rows.keys}):
            wrong = rows.wrong(key, found.get(key), began, now)
            if wrong is not None:
                yield f"table {table_id}: {wrong}"
