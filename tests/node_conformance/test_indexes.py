"""Index entries as the node protocol has them, on a real node."""

import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from tests.node_conformance.entries import INDEX, post_entries, region
from tests.node_conformance.node import ARROW, Node

__all__ = ["region"]  # fixtures

pytestmark = pytest.mark.process


def test_given_rows_with_entries_when_scanned_by_index_then_rows_come_in_its_order(
    node: Node, region: int
) -> None:
    by_key = node.scan(region, schema_version=2).rows
    found = node.scan(region, schema_version=2, index=INDEX)
    first = node.scan(region, schema_version=2, index=INDEX, limit=1, columns=[2])
    rest = node.scan(region, schema_version=2, index=INDEX, from_key="7800", to_key="7a")

    assert [(row.key, row.entry) for row in by_key] == [("61", None), ("62", None)]
    assert [(row.entry, row.key, row.values["1"]) for row in found.rows] == [
        ("78", "62", 2),
        ("79", "61", 1),
    ]
    assert first.more
    assert [(row.entry, row.values) for row in first.rows] == [("78", {"2": None})]
    assert [row.entry for row in rest.rows] == ["79"]


def test_given_entries_when_read_alone_or_as_arrow_then_they_are_the_same(
    node: Node, region: int
) -> None:
    alone = node.scan(region, schema_version=2, index=INDEX, entries_only=True)
    answer = node.post(region, "scan", accept=ARROW, schema_version=2, index=INDEX)
    empty = node.post(
        region, "scan", accept=ARROW, schema_version=2, index=INDEX, from_key="7a", columns=[1]
    )

    assert [(row.entry, row.key, row.values) for row in alone.rows] == [
        ("78", "62", {}),
        ("79", "61", {}),
    ]
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column("_entry").to_pylist() == [b"x", b"y"]
    assert table.column("c1").to_pylist() == [2, 1]
    assert pa.ipc.open_stream(empty.content).read_all().schema.names == [
        "_entry",
        "_key",
        "_version",
        "c1",
    ]


def test_given_an_entry_that_is_taken_when_written_then_nothing_of_the_batch_is(
    node: Node, region: int
) -> None:
    refused = post_entries(node, region, "s2", {b"c": 3}, (b"x", b"c"))

    assert (refused.status_code, refused.json()["code"]) == (409, "already-exists")
    assert refused.json()["facts"]["index"] == INDEX
    assert len(node.scan(region, schema_version=2).rows) == 2


def test_given_an_index_that_is_dropped_when_written_or_read_then_it_is_refused_for_ever(
    node: Node, region: int
) -> None:
    before = node.checksum(region, schema_version=2)
    entries = node.checksum(region, schema_version=2, index=INDEX)
    dropped = node.schema_order(region, version=3, schema_floor=2, dead_indexes=[INDEX])
    late = node.schema_order(region, version=2, indexes=[INDEX])

    assert [node.order(order).results[0].error for order in (dropped, late)] == [None, None]

    written = post_entries(node, region, "s2", {}, (b"z", b"a"))
    asked = [
        node.post(region, "scan", schema_version=2, index=INDEX),
        node.post(region, "scan", accept=ARROW, schema_version=2, index=INDEX),
        node.post(region, "checksum", schema_version=2, index=INDEX),
        node.post(region, "scan", schema_version=2, entries_only=True),
    ]
    assert [one.status_code for one in (written, *asked)] == [422] * 5
    assert (before.rows, entries.rows) == (2, 2)
    assert node.checksum(region, schema_version=2) == before


def test_given_an_index_of_a_schema_to_come_when_asked_then_it_is_not_ready(node: Node) -> None:
    region = node.created()

    early = post_entries(node, region, "s1", {}, (b"x", b"b"))

    assert (early.status_code, early.json()["code"]) == (503, "not-ready")


def test_given_an_open_mark_when_asked_for_a_snapshot_then_its_files_lie_where_it_says(
    node: Node, region: int
) -> None:
    marked = node.schema_order(region, version=3, indexes=[INDEX], mark="reorg")
    mark = node.order(marked).results[0].floor_version
    url = f"{node.url}/node/v1/regions/{region}/snapshot"

    rows = node.http.get(url, params={"mark": "reorg"}).json()
    both = node.http.get(url, params={"mark": "reorg", "index": INDEX}).json()

    assert (rows["region_id"], rows["mark"], rows["version"]) == (str(region), "reorg", mark)
    assert [one["file"]["family"] for one in rows["files"]] == [0]
    assert sorted(one["file"]["family"] for one in both["files"]) == [0, INDEX]
    for one in both["files"]:
        path = Path(one["root"]) / one["file"]["name"]
        assert f"{zlib.crc32(path.read_bytes()):08x}" == one["file"]["checksum"]
    assert node.http.get(url, params={"mark": "none"}).status_code == 404
    assert node.http.get(url).status_code == 422
