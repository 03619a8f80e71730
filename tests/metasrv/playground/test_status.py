"""Records of playgrounds that are gone, and of processes that are others by now."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from metasrv.cli.programs.playground_options import flags_of
from metasrv.playground.background import stop
from metasrv.playground.document import NAME
from metasrv.playground.folder import held
from metasrv.playground.holder import LOCK, process_state, record_of, recorded, this_process
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.status import status_of

URL = "http://127.0.0.1:1"
DOCUMENT: dict[str, Any] = {
    "etcd": [URL],
    "key_prefix": "x/",
    "metasrv": [URL],
    "datanodes": {},
    "frontends": {},
    "pids": {"metasrv": {"m-1": 1}, "datanode": {}, "frontend": {}, "etcd": None},
    "restart": {},
}


def written(folder: Path, record: bytes) -> Path:
    (folder / LOCK).write_bytes(record)
    (folder / NAME).write_text(json.dumps(DOCUMENT))
    return folder


def test_given_a_held_folder_then_its_process_is_known_until_it_is_left(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps(DOCUMENT))

    with held(tmp_path):
        during = status_of(tmp_path)
    after = status_of(tmp_path)

    assert (during.state, during.pid, during.programs) == ("changing", os.getpid(), ())
    assert (after.state, after.pid) == ("stopped", None)


def test_given_an_id_that_is_another_process_by_now_then_it_counts_as_gone_and_is_not_signalled(
    tmp_path: Path,
) -> None:
    earlier = replace(this_process(), started_ticks=this_process().started_ticks - 1)

    folder = written(tmp_path, record_of(earlier))

    assert status_of(folder).state == "killed"
    assert stop(folder) is None  # it would have ended this process


def test_given_a_process_that_is_no_child_of_the_playground_then_it_is_no_program_of_it(
    tmp_path: Path,
) -> None:
    folder = written(tmp_path, record_of(this_process()))

    status = status_of(folder)

    assert process_state(1) is not None
    assert [(program.id, program.state) for program in status.programs] == [("m-1", "ended")]
    assert not status.is_healthy


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"pid": 1}',
        json.dumps({**asdict(this_process()), "pid": "1"}).encode(),
        json.dumps({**asdict(this_process()), "pid": -1}).encode(),
        json.dumps({**asdict(this_process()), "pid": True}).encode(),
        json.dumps({**asdict(this_process()), "more": 1}).encode(),
    ],
    ids=["empty", "list", "no fields", "no JSON", "one field", "text", "negative", "bool", "more"],
)
def test_given_a_record_that_is_another_then_no_playground_runs(
    tmp_path: Path, record: bytes
) -> None:
    folder = written(tmp_path, record)

    assert recorded(folder) is None
    assert status_of(folder).state == "stopped"


def test_given_options_then_the_flags_in_the_background_say_them_all() -> None:
    options = PlaygroundOptions(
        Path("/data"), metasrvs=2, port=4000, etcd=(URL, URL), reset=True, supervise=True
    )

    assert flags_of(options) == [
        *("--data-dir=/data", "--metasrvs=2", "--datanodes=3", "--frontends=0", "--zones=1"),
        *("--port=4000", f"--etcd={URL},{URL}", "--key-prefix=metasrv/", "--reset", "--supervise"),
    ]
