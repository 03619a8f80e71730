"""Batches and reads that this node's regions refused, since its start: below their floors (P6).

Bounded: what is named by more tables and holders than are kept counts under no name.
"""

from collections import Counter

from metasrv_base.errors import MetaError
from metasrv_base.wire.node.nodes import RefusedStat

NAMES_MAX = 500
NAMELESS = (0, "")


class Refusals:
    def __init__(self) -> None:
        self._counts = Counter[tuple[int, str]]()

    def note(self, error: MetaError, table_id: int, holder: str | None) -> None:
        """Counts *error* if it is a floor's; None: the sender said no name."""
        if error.code != "schema-version-stale" or "floor" not in error.facts:
            return
        name = (table_id, holder or "")
        is_kept = name in self._counts or len(self._counts) < NAMES_MAX
        self._counts[name if is_kept else NAMELESS] += 1

    @property
    def total(self) -> int:
        return self._counts.total()

    def stats(self) -> list[RefusedStat]:
        return [
            RefusedStat(table_id=table_id, holder_id=holder or None, count=count)
            for (table_id, holder), count in sorted(self._counts.items())
        ]
