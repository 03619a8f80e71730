"""Stored bytes of the updates of the catalog log, counted by whoever reads them anyway."""

from array import array


class LogSizes:
    """The sizes of the updates above one version, without a gap; 4 bytes each."""

    def __init__(self) -> None:
        self._below = 0
        self._sizes = array("I")

    @property
    def newest(self) -> int:
        """Version of the last update that was counted."""
        return self._below + len(self._sizes)

    def note(self, version: int, size_bytes: int) -> None:
        """Counts an update; one that was counted before is ignored. Behind a gap, counting begins
        anew."""
        if version <= self.newest:
            return
        if version != self.newest + 1:
            self.forget(version - 1)
        self._sizes.append(size_bytes)

    def between(self, after: int, to: int) -> int:
        """Returns the bytes of the updates above *after* and up to *to*, as far as they were
        counted."""
        return sum(self._sizes[max(0, after - self._below) : max(0, to - self._below)])

    def forget(self, to: int) -> None:
        """Drops the updates up to the version *to*."""
        if to > self._below:
            del self._sizes[: to - self._below]
            self._below = to
