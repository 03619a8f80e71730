"""Forks a server for each line that it reads, and says what becomes of each.

A server begins in milliseconds that way: all is imported here, before. In: a server's orders
(server.py), one JSON line each. Out: `[number, event, what]` - `began` with its pid, `stopped`, or
`ended` with its code, which is minus the signal. All servers end with their zygote, and it with its
standard input.
"""

import json
import os
import selectors
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from tests.killed.fault import Orders
from tests.killed.server import serve

BROKEN = 3  # the code of a server that ended by an exception


class Zygote:
    def __init__(self) -> None:
        self._living: dict[int, int] = {}
        """Process id -> number."""
        self._heard = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        signal.set_wakeup_fd(self._heard[1])
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin, selectors.EVENT_READ)
            selector.register(self._heard[0], selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                self._look()
                if sys.stdin in ready and not self._read():
                    break
        for pid in self._living:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _read(self) -> bool:
        """One line. Whoever writes waits for `began` before the next."""
        line = sys.stdin.readline()
        if line:
            self._fork(json.loads(line))
        return bool(line)

    def _fork(self, orders: Orders) -> None:
        pid = os.fork()
        if pid == 0:
            self._become(orders)
        self._living[pid] = orders["number"]
        self._say(pid, "began", pid)

    def _become(self, orders: Orders) -> NoReturn:
        code = BROKEN
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # that one ends with the zygote
            serve(orders)
            code = 0
        finally:
            os._exit(code)

    def _look(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._heard[0], 4096)
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if pid == 0:
                    break
                if os.WIFSTOPPED(status):
                    self._say(pid, "stopped", 0)
                else:
                    self._say(pid, "ended", os.waitstatus_to_exitcode(status))
                    del self._living[pid]

    def _say(self, pid: int, event: str, what: int) -> None:
        print(json.dumps([self._living[pid], event, what]), flush=True)


if __name__ == "__main__":
    Zygote().run()
