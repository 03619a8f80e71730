"""A cache of values that can be made again, bounded by the bytes that they count."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteCache(Generic[K, V]):
    """Keeps what was used last. Any thread may use it; two that miss at once both make it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()
        self.size_bytes = 0

    def get(self, key: K) -> V | None:
        with self._lock:
            kept = self._values.get(key)
            if kept is None:
                return None
            self._values.move_to_end(key)
            return kept[0]

    def put(self, key: K, value: V, size_bytes: int) -> None:
        """A value that is larger than the bound is not kept, and takes no other's space."""
        with self._lock:
            self._drop(key)
            if size_bytes > self._bytes_max:
                return
            self._values[key] = value, size_bytes
            self.size_bytes += size_bytes
            while self.size_bytes > self._bytes_max:
                self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        _, size_bytes = self._values.pop(key, (None, 0))
        self.size_bytes -= size_bytes
