"""A real etcd as a child process on free ports of 127.0.0.1: one member, or one of several."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from threading import Event, Thread
from typing import IO

from metasrv.playground.ports import free_ports
from metasrv_base.rng import SystemRng

SERVES = re.compile(rb"serving (client traffic )?(insecure|secure)|serving client requests on")
START_S_MAX = 300


def free_port() -> int:
    (port,) = free_ports(1, SystemRng())
    return port


class EtcdProcess:
    """`start`, then any of `kill`, `pause`, `resume`; a second `start` uses the same data.

    *flags* of etcd beside its own: `--name=value`; the last of one name counts. *scheme* is that
    of its clients.
    """

    def __init__(self, folder: Path, *flags: str, scheme: str = "http") -> None:
        self._folder = folder
        self.flags = flags
        self.scheme = scheme
        self._ports = free_ports(2, SystemRng())
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[Thread] = []

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.endpoint}"

    @property
    def peer_port(self) -> int:
        return self._ports[1]

    @property
    def peer_url(self) -> str:
        return f"http://127.0.0.1:{self.peer_port}"

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """By itself, or it was never started."""
        return self._process is None or self._process.poll() is not None

    def start(self) -> None:
        program = shutil.which("etcd")
        assert program, "no etcd on PATH: `metasrv doctor` says how to get one"
        client, peer = self.url, self.peer_url
        self._process = subprocess.Popen(
            [
                *(program, "--data-dir", str(self._folder / "data")),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"default={peer}"),
                # One member: short times cost nothing and allow leases of one second.
                *("--heartbeat-interval", "10", "--election-timeout", "100"),
                *self.flags,
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
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)  # until its last thread stands still

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def _drain(self, lines: IO[bytes], ready: Event) -> None:
        with lines, (self._folder / "log").open("ab") as log:
            for line in lines:
                log.write(line)
                if SERVES.search(line):
                    ready.set()
