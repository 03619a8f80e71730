"""Rows by the command line on a real cluster: one looked up and changed, all of them in files."""

import gzip
import json
from pathlib import Path

import pytest

from tests.metasrv.playground.program import PlaygroundProcess, cli

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

COLUMNS = ["id:int64", "note:string='none given'", "price decimal(10,2)"]


def test_given_a_cluster_when_rows_are_written_by_commands_then_they_are_found_and_exported(
    tmp_path: Path,
) -> None:
    flags = [word for column in COLUMNS for word in ("--column", column)]
    bad = tmp_path / "bad.csv"
    bad.write_text("id,price\n7,1.50\n8,dear\n")

    with PlaygroundProcess(tmp_path / "data", "--datanodes", "1") as playground:
        found = playground.document()
        cli(found, "table", "create", "t", *flags, "--key", "id", "--partitions", "3")
        cli(found, "index", "create", "t", "by_note", "--column", "note")
        cli(found, "row", "insert", "t", "id=1", "price=1.50")
        cli(found, "row", "insert", "t", "id=2", "note=5", "price=2.00")
        twice = cli(found, "row", "insert", "t", "id=2", exit_code=1)
        cli(found, "row", "update", "t", "id=2", "note=null")
        first = json.loads(cli(found, "row", "get", "t", "1", "--json"))
        second = cli(found, "row", "get", "t", "2")
        missing = cli(found, "row", "get", "t", "3", exit_code=1)
        wrong = cli(found, "row", "get", "t", "x", exit_code=1)
        by_key = cli(found, "scan", "t", "--where", "id=1", "--format", "ndjson")
        by_price = cli(found, "scan", "t", "--where", "price=1", exit_code=2)
        by_index = cli(found, "scan", "t", "--where", "note=none given", "--format", "ndjson")
        shown = cli(found, "table", "get", "t")
        for name in ("x.csv.gz", "x.ndjson", "x.parquet"):
            cli(found, "export", "t", str(tmp_path / name))
        cli(found, "row", "delete", "t", "1")
        cli(found, "row", "delete", "t", "2")
        loaded = []
        for name in ("x.csv.gz", "x.ndjson", "x.parquet"):
            judged = cli(found, "import", "t", str(tmp_path / name), "--dry-run")
            none = cli(found, "count", "t").strip()
            cli(found, "import", "t", str(tmp_path / name))
            rows = cli(found, "scan", "t", "--format", "ndjson").splitlines()
            loaded.append((judged.split()[0], none, sorted(rows)))
            cli(found, "table", "truncate", "t", "--yes")
        fault = cli(found, "import", "t", str(bad), exit_code=1)

    kept: list[dict[str, object]] = [{"id": 1, "note": "none given", "price": "1.50"}]
    kept.append({"id": 2, "note": None, "price": "2.00"})
    assert "exists already" in twice
    assert first == kept[0]
    assert second.splitlines() == ["id     2", "note   null", "price  2.00"]
    assert "no row 3 in t" in missing
    assert "id: expected" in wrong
    assert json.loads(by_key) == json.loads(by_index) == kept[0]
    assert "nor an index" in by_price
    assert "partitions   hash of id into 3" in shown
    assert "by_note" in shown
    assert gzip.decompress((tmp_path / "x.csv.gz").read_bytes()).startswith(b'"id","note"')
    assert loaded == [("2", "0", [json.dumps(row) for row in kept])] * 3
    assert "line 3, column price" in fault
    assert list(tmp_path.glob(".*.part")) == []
