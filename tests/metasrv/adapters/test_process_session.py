"""A session of real processes, killed whole."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process

from metasrv.adapters.process_session import kill_session, processes_of
from tests.processes import session_is_running

# A child in a group of its own (as PySpark's worker daemon), whose own child goes on forking.
FAMILY = """
import os, signal, subprocess, sys, time
if os.fork() == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        while True:
            subprocess.run(["sleep", "0.01"])
    print("ready", flush=True)
signal.pause()
"""


async def started(program: str) -> Process:
    command = (sys.executable, "-c", program)
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, start_new_session=True)


async def test_given_groups_and_forks_when_a_session_is_killed_then_none_of_it_runs() -> None:
    leader = await started(FAMILY)
    assert leader.stdout is not None
    assert await leader.stdout.readline() == b"ready\n"
    assert len(processes_of(leader.pid)) >= 3

    await kill_session(leader.pid)

    assert not session_is_running(leader.pid)
    assert processes_of(leader.pid) == []
    assert await leader.wait() == -signal.SIGKILL


async def test_given_a_session_that_is_over_when_killed_then_nothing_happens() -> None:
    leader = await started("")
    await leader.wait()

    await kill_session(leader.pid)

    assert processes_of(leader.pid) == []
