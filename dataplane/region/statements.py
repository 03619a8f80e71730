"""The memory of applied statements, which makes sending a batch again harmless.

Bounded: the newest 10,000, and of these those whose row version is at most 10 minutes older than
the newest given. A client that sends a batch again does so within its own deadline, which is far
below that. Only applied batches are remembered: a refused one wrote nothing and is judged again.
"""

from collections.abc import Iterable

from dataplane.region.logged_group import LoggedGroup
from dataplane.region.manifest import Remembered
from dataplane.region.versions import version_of_ms, wall_ms_of

STATEMENTS_MAX = 10_000
STATEMENTS_AGE_MS = 600_000


class StatementMemory:
    """In order of row version. Durable through the log, and through manifests once it is cut."""

    def __init__(self, known: Iterable[Remembered] = ()) -> None:
        self._by_id: dict[str, Remembered] = {}
        for entry in sorted(known, key=lambda entry: entry.version):
            self.add(entry)

    def find(self, statement_id: str) -> Remembered | None:
        return self._by_id.get(statement_id)

    def add(self, entry: Remembered) -> None:
        self._by_id[entry.statement_id] = entry
        oldest = version_of_ms(max(wall_ms_of(entry.version) - STATEMENTS_AGE_MS, 0))
        while len(self._by_id) > STATEMENTS_MAX or self._first().version < oldest:
            del self._by_id[self._first().statement_id]

    def all(self) -> tuple[Remembered, ...]:
        return tuple(self._by_id.values())

    def _first(self) -> Remembered:
        return next(iter(self._by_id.values()))


def remember(group: LoggedGroup, memory: StatementMemory) -> None:
    for one in group.statements:
        memory.add(Remembered(statement_id=one.id, version=one.version, rows=one.rows))
