"""A playground as its users run it: a process, its document, and what is left when it is gone."""

import json
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from typer.testing import CliRunner

from metasrv.cli.main import application
from tests.metasrv.playground.waiting import until

START_S_MAX = 300
STOP_S_MAX = 300


class PlaygroundProcess:
    """`metasrv playground` in a context; ends with it whatever happened."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self._flags = flags
        self._open = ExitStack()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        out = self._open.enter_context((self.folder.parent / "playground.out").open("ab"))
        program = [sys.executable, "-m", "metasrv.cli.main", "playground"]
        argv = [*program, "--data-dir", str(self.folder), *self._flags]
        self.process = subprocess.Popen(argv, stdout=out, stderr=out)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(signal.SIGTERM)
        self._open.close()

    def document(self) -> dict[str, Any]:
        """Once it is there."""
        path = self.folder / "playground.json"

        def is_there() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.said()
            return path.exists()

        until(is_there, START_S_MAX, self.said)
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def said(self) -> str:
        return (self.folder.parent / "playground.out").read_text()

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_S_MAX)


def pids_of(document: dict[str, Any]) -> list[int]:
    pids = document["pids"]
    own = [] if pids["etcd"] is None else [pids["etcd"]]
    roles = ("metasrv", "datanode", "frontend")
    return [*own, *(pid for role in roles for pid in pids[role].values())]


def cli(document: dict[str, Any], *words: str, exit_code: int = 0) -> str:
    """Runs a command; returns its stdout, or its stderr when it is to fail."""
    urls = ",".join(document["metasrv"])
    done = CliRunner().invoke(application([words[0]]), list(words), env={"METASRV_URL": urls})
    assert done.exit_code == exit_code, done.output
    return done.stderr if exit_code else done.stdout
