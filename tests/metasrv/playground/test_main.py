"""`metasrv playground` as its users run it: one whole cluster, and nothing left of it."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metasrv_base.wire.problem.problems import KINDS
from tests.metasrv.playground.program import PlaygroundProcess, cli, pids_of
from tests.metasrv.playground.waiting import until
from tests.processes import is_running

pytestmark = pytest.mark.process

SMALL = ("--datanodes", "1", "--frontends", "0")
GONE_S_MAX = 300
AGAIN_S_MAX = 300


def test_given_a_playground_when_used_from_the_command_line_then_a_table_lives_its_life(
    tmp_path: Path,
) -> None:
    rows = pa.table({"id": range(5_000), "note": [f"n{id}" for id in range(5_000)]})
    pq.write_table(rows, tmp_path / "rows.parquet")

    with PlaygroundProcess(tmp_path / "data", "--metasrvs", "2") as playground:
        found = playground.document()
        nodes = json.loads(cli(found, "node", "list", "--json"))
        cli(found, *f"import t {tmp_path}/rows.parquet --create --key id --partitions 3".split())
        counted = json.loads(cli(found, "count", "t", "--json"))
        cli(found, "table", "alter", "t", "--rename-column", "note:remark")
        cli(found, "table", "rename", "t", "u")
        renamed = json.loads(cli(found, "count", "u", "--json"))
        scanned = cli(found, "scan", "u", "--format", "ndjson", "--from", "7", "--to", "8")
        cli(found, "table", "drop", "u")
        gone = cli(found, "count", "u", exit_code=1)
        cli(found, "table", "undrop", "u")
        back = json.loads(cli(found, "count", "u", "--json"))
        procedures = json.loads(cli(found, "procedure", "list", "--json"))
        regions = json.loads(cli(found, "region", "list", "--json"))
        columns = ["--column", "id:int64", "--column", "note:string"]
        cli(found, "table", "create", "v", *columns, "--key", "id")
        cli(found, "index", "create", "v", "by_note", "--column", "note")
        cli(found, "import", "v", f"{tmp_path}/rows.parquet")
        by_note = ["--index", "by_note", "--eq", "n7"]
        indexed = cli(found, "scan", "v", *by_note, "--format", "ndjson")
        cli(found, "cluster", "maintenance", "on", "--reason", "test")
        cluster = json.loads(cli(found, "cluster", "get", "--json"))
        alive = [pid for pid in pids_of(found) if is_running(pid)]
        assert playground.end(signal.SIGTERM) == 0

    assert sorted(node["id"] for node in nodes) == sorted(found["datanodes"])
    assert counted["rows"] == 5_000
    assert (renamed["checksum"], back["checksum"]) == (counted["checksum"],) * 2
    assert json.loads(scanned) == {"id": 7, "remark": "n7"}
    assert KINDS["table-not-found"].title in gone
    assert {one["state"] for one in procedures} == {"succeeded"}
    assert len(regions) == 3
    assert json.loads(indexed) == {"id": 7, "note": "n7"}
    assert {one["id"] for one in cluster["metasrvs"]} == {"m-1", "m-2"}
    assert len(alive) == 7
    assert not [pid for pid in pids_of(found) if is_running(pid)]


def test_given_a_playground_when_it_is_killed_then_nothing_of_it_runs_and_its_rows_are_kept(
    tmp_path: Path,
) -> None:
    create = ["table", "create", "t", "--column", "id:int64", "--key", "id"]

    with PlaygroundProcess(tmp_path / "data", *SMALL) as playground:
        found = playground.document()
        cli(found, *create)
        playground.end(signal.SIGKILL)
        until(lambda: not any(map(is_running, pids_of(found))), GONE_S_MAX)
        (tmp_path / "data" / "playground.json").unlink()
    with PlaygroundProcess(tmp_path / "data", *SMALL) as again:
        kept = json.loads(cli(again.document(), "table", "list", "--json"))

    assert [table["name"] for table in kept] == ["t"]


def test_given_supervision_when_a_node_is_killed_then_it_is_there_again(tmp_path: Path) -> None:
    with PlaygroundProcess(tmp_path / "data", *SMALL, "--supervise") as playground:
        found = playground.document()
        old = found["datanodes"]["dn-1"]["pid"]
        os.kill(old, signal.SIGKILL)
        until(
            lambda: playground.document()["datanodes"]["dn-1"]["pid"] != old,
            AGAIN_S_MAX,
            playground.said,
        )
        new = playground.document()["datanodes"]["dn-1"]
        until(lambda: "program_restarted" in playground.said(), AGAIN_S_MAX, playground.said)

    assert new["url"] == found["datanodes"]["dn-1"]["url"]


def test_given_no_supervision_when_a_node_is_killed_then_its_command_line_starts_it_again(
    tmp_path: Path,
) -> None:
    with PlaygroundProcess(tmp_path / "data", *SMALL) as playground:
        found = playground.document()
        os.kill(found["datanodes"]["dn-1"]["pid"], signal.SIGKILL)
        ready = tmp_path / "data" / "dn-1" / "ready.json"
        until(lambda: "program_ended" in playground.said(), GONE_S_MAX, playground.said)
        ready.unlink()
        mine = subprocess.Popen(found["restart"]["dn-1"], stdout=subprocess.DEVNULL)
        until(ready.exists, AGAIN_S_MAX, playground.said)
        url = json.loads(ready.read_text())["url"]
        mine.terminate()
        mine.wait()

    assert url == found["datanodes"]["dn-1"]["url"]
