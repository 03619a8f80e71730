"""Runs two processes on one MemoryStore, stopping either between any two file operations.

A process is a thread with a disk of its own; only one runs at a time, so a run is a pure function
of where the two are stopped.
"""

import threading
from collections.abc import Callable

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore

WAIT_S = 120


class Process:
    """Runs `program` on a disk that stops it before its `stop_at`-th operation until `resume`."""

    def __init__(
        self, store: MemoryStore, program: Callable[[MemoryDisk], None], stop_at: int
    ) -> None:
        self.operations: list[str] = []
        self.failure: BaseException | None = None
        self._program = program
        self._disk = MemoryDisk(store, self._hook)
        self._stop_at = stop_at
        self._quiet = threading.Event()  # stopped or ended
        self._go = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()
        assert self._quiet.wait(WAIT_S)

    def resume(self) -> None:
        self._go.set()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure

    def _hook(self, operation: str, path: str) -> None:
        self.operations.append(f"{operation} {path}")
        if len(self.operations) == self._stop_at:
            self._quiet.set()
            assert self._go.wait(WAIT_S)

    def _run(self) -> None:
        try:
            self._program(self._disk)
        except Exception as failure:  # noqa: BLE001 - a task's root: handed to the test
            self.failure = failure
        finally:
            self._quiet.set()


def interleave(
    store: MemoryStore,
    first: Callable[[MemoryDisk], None],
    second: Callable[[MemoryDisk], None],
    stops: tuple[int, int],
) -> tuple[Process, Process]:
    """First until its stop, second until its stop, first to its end, second to its end."""
    one, two = Process(store, first, stops[0]), Process(store, second, stops[1])
    one.start()
    two.start()
    one.resume()
    two.resume()
    return one, two
