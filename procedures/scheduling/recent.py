"""Procedures that have just ended, kept in memory for clients that ask at once."""

from collections import OrderedDict

from keys.model.records import ProcedureHistory

COUNT_MAX = 1_024
BYTES_MAX = 8 << 20  # as JSON; as objects some five times as much


class Recent:
    """The newest histories of a term, bounded in number and in bytes of JSON.

    The newest one is kept whatever its size.
    """

    def __init__(self, *, count_max: int = COUNT_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._kept: OrderedDict[str, tuple[ProcedureHistory, int]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, procedure: str) -> bool:
        return procedure in self._kept

    def __getitem__(self, procedure: str) -> ProcedureHistory:
        return self._kept[procedure][0]

    def add(self, procedure: str, history: ProcedureHistory) -> None:
        """Keeps *history*, and forgets the oldest ones beyond the bounds."""
        _, before = self._kept.pop(procedure, (history, 0))
        size = history.stored_form.json_bytes
        self._kept[procedure] = (history, size)
        self.size_bytes += size - before
        while len(self._kept) > 1 and self._is_full():
            _, (_, gone) = self._kept.popitem(last=False)
            self.size_bytes -= gone

    def _is_full(self) -> bool:
        return len(self._kept) > self._count_max or self.size_bytes > self._bytes_max
