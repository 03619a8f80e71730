"""A datanode as a child process: started, killed, stopped and started again over one root."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from serving.launch import program

START_S_MAX = 300


class DatanodeProcess:
    """`folder` keeps its root, its ready file and its log over restarts."""

    def __init__(self, node_id: str, folder: Path, metasrv_url: str, **flags: str) -> None:
        self.node_id = node_id
        self.root = str(folder / "root")
        self.url = ""
        self.incarnation = ""
        self._folder = folder
        self._flags = {"metasrv": metasrv_url, "shared_roots": str(folder.parent), **flags}
        self._child: subprocess.Popen[str] | None = None

    def start(self) -> "DatanodeProcess":
        """Returns when it listens."""
        given = {"node_id": self.node_id, "root": self.root, **self._flags}
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "log").open("a") as log:
            self._child = subprocess.Popen(
                [*program("dataplane.datanode.main"), *flags],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, f"the datanode did not start:\n{self.log()}"
        ready: dict[str, Any] = json.loads(line)
        self.url, self.incarnation = ready["url"], ready["incarnation"]
        return self

    def log(self) -> str:
        return (self._folder / "log").read_text()

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL: what was not on disk, or in the page cache, is gone."""
        self.send(signal.SIGKILL)
        self.wait()

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        assert self._child is not None
        code = self._child.wait(START_S_MAX)
        assert self._child.stdout is not None
        self._child.stdout.close()
        self._child = None
        return code

    def traced(
        self, output: Path, calls: str, inject: str | None = None
    ) -> AbstractContextManager[None]:
        """As `traced`, its own calls."""
        return traced(self.pid, output, calls, inject)

    def close(self) -> None:
        """At the end of a test, whatever state it is in."""
        if self._child is not None:
            self.kill()


@contextmanager
def traced(pid: int, output: Path, calls: str, inject: str | None = None) -> Iterator[None]:
    """System calls of all threads of a process, one per line in `output`; *inject*: what befalls
    them, as strace has it."""
    spoilt = ["-e", f"inject={calls}:{inject}"] if inject else []
    command = ["strace", "-f", "-e", f"trace={calls}", *spoilt, "-o", str(output)]
    tracer = subprocess.Popen([*command, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    try:
        attached = tracer.stderr.readline()
        assert "attached" in attached, attached
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(START_S_MAX)
        tracer.stderr.close()
