"""Limits the rate at which the jobs of a procedure read: a token bucket in the driver, asked over a
socket.

A task reports how many rows it has read, waits as long as it is told, and asks again. A new rate
therefore holds from the next question on, for all tasks of all jobs together, wherever they run; a
job that waits for its turn takes no part of the rate. The rows reported are also the progress of
the job. `Bucket` is the pure part, `PaceServer` and `PaceClient` the wire.
"""

import hmac
import math
import secrets
import socket
from dataclasses import dataclass
from functools import partial
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable

WAIT_MS_MAX = 200
"""The longest wait between two questions, and so the delay until a task knows a new rate."""
DEADLINE_S = 30.0
STOPPED = -1
_LINE_BYTES_MAX = 256
_LOOK_S = 0.02  # whether the job is over


@dataclass
class Bucket:
    """`rows_per_s` None: as fast as it goes. Rows are owed rather than saved up: whoever comes when
    nothing is owed reads at once, and the next one waits for it."""

    rows_per_s: int | None
    taken: int = 0
    """Rows of all who were let through."""
    owed: float = 0.0
    at_ms: int | None = None
    """The time at which `owed` was true."""

    def take(self, rows: int, now_ms: int) -> int:
        """0: read on. Else the milliseconds after which to ask again; nothing was taken."""
        rate = self.rows_per_s
        if rate is None:
            self.owed, self.at_ms = 0.0, now_ms
            self.taken += rows
            return 0
        passed_ms = 0 if self.at_ms is None else now_ms - self.at_ms
        self.owed, self.at_ms = max(self.owed - passed_ms * rate / 1000, 0.0), now_ms
        if self.owed > 0:
            return max(int(self.owed * 1000 / rate), 1)
        self.owed += rows
        self.taken += rows
        return 0

    def paid(self, now_ms: int) -> int:
        """Rows for which the time that they may take has passed."""
        passed_ms = 0 if self.at_ms is None else now_ms - self.at_ms
        owed = max(self.owed - passed_ms * (self.rows_per_s or 0) / 1000, 0.0)
        return self.taken - (0 if self.rows_per_s is None else math.ceil(owed))


class SharedBucket:
    """The rows of one job, taken from a bucket that other jobs may take from too. Safe for threads.
    Each has one of its own; `beside` makes that of another job."""

    def __init__(
        self, rows_per_s: int | None, clock: Clock, beside: "SharedBucket | None" = None
    ) -> None:
        self._bucket: Bucket = Bucket(rows_per_s) if beside is None else beside._bucket
        self._lock: Lock = Lock() if beside is None else beside._lock
        self._clock = clock
        self._taken = 0
        """Rows of this job."""
        self._until = 0
        """Rows of all jobs, when this one took its last."""
        self._stopped = Event()
        self.throttle(rows_per_s)

    @property
    def taken(self) -> int:
        with self._lock:
            return self._taken

    @property
    def paid(self) -> int:
        """Rows of this job for which the time that they may take has passed."""
        with self._lock:
            return self._taken - min(self._owed(), self._taken)

    def settle(self) -> None:
        """Returns when this job owes nothing any more, or is over. Else a job of fewer rows than
        one batch, and the last batch of each, would be read at no rate at all."""
        while (wait_ms := self._wait_ms()) and not self._stopped.is_set():
            self._stopped.wait(min(wait_ms, WAIT_MS_MAX) / 1000)

    def throttle(self, rows_per_s: int | None) -> None:
        """Sets the rate from now on, for all jobs that share the bucket."""
        with self._lock:
            self._bucket.rows_per_s = rows_per_s

    def stop(self) -> None:
        """Ends the job: every later `take` is answered STOPPED."""
        self._stopped.set()

    def take(self, rows: int) -> int:
        """Takes rows from the bucket, as `Bucket.take`; returns STOPPED if the job is over."""
        if self._stopped.is_set():
            return STOPPED
        with self._lock:
            wait_ms = self._bucket.take(rows, self._clock.mono_ms())
            if not wait_ms:
                self._taken += rows
                self._until = self._bucket.taken
            return wait_ms

    def _owed(self) -> int:
        """Rows that this job took ahead of their time. What others took later does not count."""
        return max(self._until - self._bucket.paid(self._clock.mono_ms()), 0)

    def _wait_ms(self) -> int:
        """The time until nothing is owed; 0: nothing is."""
        with self._lock:
            rate = self._bucket.rows_per_s
            owed = self._owed()
            return max(owed * 1000 // rate, 1) if owed and rate else 0


@dataclass(frozen=True, slots=True)
class PaceAddress:
    """Goes with every task."""

    host: str
    port: int
    secret: str


class _Server(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128  # tasks that begin together


class PaceServer:
    """Answers tasks that know its address from the bucket, while it is entered."""

    def __init__(self, bucket: SharedBucket, host: str) -> None:
        secret = secrets.token_hex(16)

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                shown_secret = self.rfile.readline(_LINE_BYTES_MAX).strip()
                if not hmac.compare_digest(shown_secret, secret.encode()):
                    return
                while line := self.rfile.readline(_LINE_BYTES_MAX):
                    self.wfile.write(b"%d\n" % bucket.take(int(line)))

        self._server = _Server((host, 0), Handler)
        self.address = PaceAddress(host, self._server.server_address[1], secret)

    def __enter__(self) -> Self:
        serve = partial(self._server.serve_forever, poll_interval=_LOOK_S)
        Thread(target=serve, name="pace", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class PaceClient:
    """Asks for one task."""

    def __init__(self, address: PaceAddress) -> None:
        try:
            self._socket = socket.create_connection((address.host, address.port), DEADLINE_S)
            self._answers = self._socket.makefile("rb")
            self._socket.sendall(address.secret.encode() + b"\n")
        except OSError as error:
            raise Unavailable("not-ready", what="the driver", reason=str(error)) from error

    def take(self, rows: int) -> None:
        """Returns when the task may read on. Raises Unavailable if the driver is gone."""
        try:
            while wait_ms := self._ask(rows):
                if wait_ms == STOPPED:
                    raise Unavailable("not-ready", reason="cancelled")
                Event().wait(min(wait_ms, WAIT_MS_MAX) / 1000)
        except (OSError, ValueError) as error:
            raise Unavailable("not-ready", what="the driver", reason=str(error)) from error

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def _ask(self, rows: int) -> int:
        self._socket.sendall(b"%d\n" % rows)
        return int(self._answers.readline(_LINE_BYTES_MAX))
