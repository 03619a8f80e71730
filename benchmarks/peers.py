"""Programs of others that ours are compared with, as children that end when we do."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from metasrv.playground.die_with_parent import tie_to


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of others and how it is run."""

    argv: Sequence[str | Path]
    log: Path
    """The file of all that it prints."""
    user: str | None = None
    """None: ours."""
    ends_by: signal.Signals = signal.SIGTERM
    """The signal when it is left."""
    dies_by: signal.Signals = signal.SIGKILL
    """The signal when this process dies."""
    cwd: Path | None = None


@contextmanager
def running(peer: Peer) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs it and ends it. The kernel ends it if this process dies, or the thread that starts it.

    No script ties it to us, as in `metasrv.playground.child`: its user might not enter our folder.
    """
    with peer.log.open("wb") as log:
        process = subprocess.Popen(
            peer.argv,
            cwd=peer.cwd,
            user=peer.user,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=partial(tie_to, os.getpid(), peer.dies_by),  # a change of user unties
        )
    try:
        yield process
    finally:
        process.send_signal(peer.ends_by)
        process.wait()
