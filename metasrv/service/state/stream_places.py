"""The streams that a server has open, by kind: each kind has a bound of its own."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from metasrv_base.errors import Unavailable

STREAMS_MAX = 1_000  # of procedures and of the feed; each is a connection and a task
VIEW_STREAMS_MAX = 32
"""Views of the information schema that are sent whole: each keeps the catalog of its version."""
WATCHERS_MAX = 1_500  # of events; apart, so that watchers never take a frontend's place
CATCHING_UP_MAX = 4  # of those; each holds a window of the log, and a thread decodes it


class StreamPlaces:
    """Streams of one kind. `open` is their number now."""

    def __init__(self, most: int, what: str = "event stream") -> None:
        self.most = most
        self.what = what
        self.open = 0
        self.lost: Counter[str] = Counter()
        """Streams that were ended since the start because their readers were too slow, by reason.
        `stalled`: received nothing; `behind`: what follows is not kept any more; `slow`: took
        too long over versions from the log, and was sent to another server."""

    def must_have_room(self) -> None:
        """Raises Unavailable("not-ready")."""
        if self.open >= self.most:
            raise Unavailable("not-ready", what=f"another {self.what} (too many are open)")

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Takes a place, while inside."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
