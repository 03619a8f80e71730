"""`metasrv playground start, stop, status`, with real processes that are killed at will."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from metasrv.cli.environment import FOLDER_VARIABLE, playground_url
from metasrv.cli.main import application
from metasrv.playground.background import stop
from metasrv.playground.holder import LOCK
from tests.metasrv.playground.waiting import until
from tests.processes import has_ended, is_running

pytestmark = pytest.mark.process

SMALL = ("--datanodes", "1", "--frontends", "0")
START_S_MAX = 300


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "data"
    yield data
    stop(data)


def playground(folder: Path, command: str, *flags: str) -> Result:
    words = ["playground", command, "--data-dir", str(folder), *flags]
    return CliRunner().invoke(application(["playground"]), words, env={"COLUMNS": "80"})


def status_in(folder: Path) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(playground(folder, "status", "--json").stdout)
    return status


def pids_in(folder: Path) -> dict[str, int]:
    status = status_in(folder)
    return {"playground": status["pid"], **{row["id"]: row["pid"] for row in status["programs"]}}


def test_given_a_playground_when_started_used_and_stopped_then_each_says_so(folder: Path) -> None:
    before = playground(folder, "status")
    started = playground(folder, "start", *SMALL)
    assert started.exit_code == 0, started.output
    status = playground(folder, "status")
    again = playground(folder, "start", *SMALL)
    pids = pids_in(folder)
    nodes = CliRunner().invoke(
        application(["node"]), ["node", "list", "-o", "name"], env={FOLDER_VARIABLE: str(folder)}
    )
    os.kill(pids["dn-1"], signal.SIGKILL)
    assert has_ended(pids["dn-1"])
    wounded = playground(folder, "status")
    os.kill(pids["m-1"], signal.SIGSTOP)
    until(lambda: status_in(folder)["programs"][1]["state"] == "suspended", START_S_MAX)
    stopped = playground(folder, "stop")
    idle = playground(folder, "stop")

    assert before.exit_code == 1
    assert "not running" in before.stdout
    assert f"metasrv playground stop --data-dir {folder}" in started.stdout
    assert (status.exit_code, status.stdout.count(" running ")) == (0, 3)
    assert all(str(pid) in status.stdout for pid in pids.values())
    assert again.exit_code == 1
    assert "A playground runs there already" in again.stderr
    assert nodes.stdout == "dn-1\n"
    assert wounded.exit_code == 1
    assert f"{folder}/logs/dn-1.log" in wounded.stdout.replace("\n", "")
    assert stopped.exit_code == 0
    assert not [id for id, pid in pids.items() if is_running(pid)]
    assert all(f"pid {pids[id]}" in stopped.stdout for id in ("playground", "etcd", "m-1"))
    assert (idle.exit_code, idle.stdout) == (0, f"no playground runs in {folder}\n")


def test_given_a_playground_that_was_killed_then_its_record_is_known_as_stale_and_it_starts_again(
    folder: Path,
) -> None:
    assert playground(folder, "start", *SMALL).exit_code == 0
    old = pids_in(folder)
    os.kill(old["playground"], signal.SIGKILL)
    assert all(has_ended(pid) for pid in old.values())

    killed = status_in(folder)
    known = playground_url({FOLDER_VARIABLE: str(folder)})
    idle = playground(folder, "stop")
    started = playground(folder, "start", *SMALL)
    new = pids_in(folder)

    assert (killed["state"], {row["state"] for row in killed["programs"]}) == ("killed", {"ended"})
    assert known is None
    assert "no playground runs" in idle.stdout
    assert started.exit_code == 0, started.output
    assert new["playground"] != old["playground"]


def test_given_a_program_that_cannot_run_when_started_then_the_log_is_told_and_nothing_is_left(
    folder: Path,
) -> None:
    (folder / "etcd").mkdir(parents=True)
    (folder / "etcd" / "data").write_text("not a folder")

    failed = playground(folder, "start", *SMALL)

    assert failed.exit_code == 1
    assert "error listing data dir" in failed.stderr
    assert str(folder / "logs" / "playground.log") in failed.stderr
    assert status_in(folder)["state"] == "stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_given_a_start_when_interrupted_then_nothing_is_left_and_when_killed_it_can_be_stopped(
    folder: Path, number: signal.Signals
) -> None:
    program = [sys.executable, "-m", "metasrv.cli.main", "playground", "start"]
    start = subprocess.Popen(
        [*program, "--data-dir", str(folder), *SMALL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: (folder / LOCK).exists() and status_in(folder)["pid"], START_S_MAX)
    pid = status_in(folder)["pid"]
    assert status_in(folder)["state"] == "changing"

    start.send_signal(number)
    _, said = start.communicate(timeout=START_S_MAX)

    if number is signal.SIGINT:
        assert start.returncode == 130, said
        assert "nothing of the playground is left running" in said
    else:
        assert is_running(pid)
        assert playground(folder, "stop").exit_code == 0
    assert not is_running(pid)
    assert status_in(folder)["state"] == "stopped"


def test_given_a_file_for_a_folder_when_started_then_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    refused = playground(file, "start")

    assert refused.exit_code == 1
    assert f"--data-dir {file}" in refused.stderr
    assert refused.exception is None or isinstance(refused.exception, SystemExit)


def test_given_options_before_the_command_that_takes_them_then_they_are_refused(
    folder: Path,
) -> None:
    words = ["playground", "--data-dir", str(folder), "stop"]

    refused = CliRunner().invoke(application(["playground"]), words)

    assert refused.exit_code == 2
    assert "give it after" in refused.stderr
