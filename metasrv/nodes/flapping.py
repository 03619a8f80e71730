"""Whether a node dies and returns too often. Pure: times are arguments, monotonic."""

from collections import deque
from dataclasses import dataclass, field

REMEMBERED_MAX = 100  # as `flapping_returns` allows


@dataclass(slots=True)
class Returns:
    """The times at which one node came back, as far as this leader saw: a new process, or heard
    after death."""

    last_ms: int | None = None
    """The last of them; None: it has not come back."""
    _at_ms: deque[int] = field(default_factory=lambda: deque(maxlen=REMEMBERED_MAX))

    def came_back(self, now_ms: int, *, window_ms: int, limit: int) -> bool:
        """Whether this return makes it *limit* in the window; then counting begins anew, so that
        a node which goes on like that is reported again, and not at every return."""
        self.last_ms = now_ms
        self._at_ms.append(now_ms)
        recent = sum(at_ms > now_ms - window_ms for at_ms in self._at_ms)
        if recent < limit:
            return False
        self._at_ms.clear()
        return True
