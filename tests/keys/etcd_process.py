"""A real etcd of one member, as a child process on free ports of 127.0.0.1."""

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from threading import Event, Thread
from typing import IO

SERVES = re.compile(rb"serving (client traffic )?insecure")
START_S_MAX = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EtcdProcess:
    """`start`, then any of `kill`, `pause`, `resume`; a second `start` uses the same data.

    *flags* of etcd beside its own: `--name=value`.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder = folder
        self._flags = flags
        self._ports = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[Thread] = []

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    def start(self) -> None:
        program = shutil.which("etcd")
        assert program, "no etcd on PATH: `metasrv doctor` says how to get one"
        client, peer = (f"http://127.0.0.1:{port}" for port in self._ports)
        self._process = subprocess.Popen(
            [
                *(program, "--data-dir", str(self._folder / "data")),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"default={peer}"),
                # One member: short times cost nothing and allow leases of one second.
                *("--heartbeat-interval", "10", "--election-timeout", "100"),
                *self._flags,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"]},
        )
        ready = Event()
        assert self._process.stderr
        thread = Thread(target=self._drain, args=(self._process.stderr, ready), daemon=True)
        thread.start()
        self._threads.append(thread)
        assert ready.wait(START_S_MAX), f"etcd did not start: {self._folder / 'log'}"

    def kill(self) -> None:
        """SIGKILL, as by `kill -9`."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._threads.pop().join()
            self._process = None

    def pause(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def _drain(self, lines: IO[bytes], ready: Event) -> None:
        with lines, (self._folder / "log").open("ab") as log:
            for line in lines:
                log.write(line)
                if SERVES.search(line):
                    ready.set()
