"""Memory that is asked for before it is taken: scans, batches, and answers on their way."""

import threading
from types import TracebackType
from typing import Self

from metasrv_base.errors import Unavailable


class Reservations:
    """The memory reserved in one part of a program. Safe for threads.

    A holder that finds the part empty is admitted whatever it asks for, so that a request that is
    larger than the part is served alone. So the part is exceeded by one such holder at most.
    """

    def __init__(self, what: str, bytes_max: int) -> None:
        """Reserves nothing yet. *what* names the part of the program in errors."""
        self.what = what
        self.bytes_max = bytes_max
        self.bytes = 0
        """Held at present."""
        self._lock = threading.Lock()

    def hold(self, size: int) -> "HeldBytes":
        """Takes *size* bytes until `HeldBytes.release`. Raises Unavailable if there is no room."""
        held = HeldBytes(self)
        held.grow(size)
        return held

    def change(self, before: int, after: int) -> None:
        """A holder of *before* bytes has *after* from now on. Raises Unavailable, with nothing
        changed, if it would be more and there is no room."""
        with self._lock:
            others = self.bytes - before
            if after > before and others > 0 and others + after > self.bytes_max:
                reason = f"its memory for {self.what} is full"
                raise Unavailable(what="the server", reason=reason, limit_bytes=self.bytes_max)
            self.bytes = others + after


class HeldBytes:
    """A holder's bytes of a part. A context that gives them back at its end."""

    def __init__(self, part: Reservations) -> None:
        self._part = part
        self.bytes = 0

    def grow(self, size: int) -> None:
        """Takes *size* bytes more. Raises Unavailable if there is no room."""
        self.set(self.bytes + size)

    def set(self, size: int) -> None:
        """Has *size* bytes from now on. Raises Unavailable, with nothing changed, where that is
        more and there is no room."""
        self._part.change(self.bytes, size)
        self.bytes = size

    def release(self) -> None:
        """Gives all back. May be called again."""
        self.set(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
