"""Batches and reads as metasrv_base/wire/node/batches.py has them, on a real node."""

import pyarrow as pa
import pytest

from metasrv_base.wire.node.batches import Rows
from tests.node_conformance.node import ARROW, TABLE, Node, Write

pytestmark = pytest.mark.process


def test_given_a_batch_when_written_then_reads_see_it(node: Node) -> None:
    region = node.created()

    written = node.write(region, [Write(b"b", 2), Write(b"a", 1)], "s1")

    rows = node.scan(region).rows
    assert [row.key for row in rows] == ["61", "62"]
    assert [row.values for row in rows] == [{"1": 1, "2": "v1"}, {"1": 2, "2": "v2"}]
    assert {row.version for row in rows} == {written.version}


def test_given_a_statement_sent_twice_when_answered_then_the_first_result(node: Node) -> None:
    region = node.created()
    first = node.write(region, [Write(b"a", 1)], "s1")

    again = node.write(region, [Write(b"a", 9), Write(b"b", 9)], "s1")

    assert again == first.model_copy(update={"repeated": True})
    assert len(node.scan(region).rows) == 1


def test_given_expectations_when_one_fails_then_nothing_of_the_batch_is_done(
    node: Node,
) -> None:
    region = node.created()
    version = node.write(region, [Write(b"a", 1, expect=0)], "s1").version

    exists = node.post_batch(region, [Write(b"a", 2, expect=0), Write(b"b", 2)], "s2")
    moved = node.post_batch(region, [Write(b"a", 2, expect=version + 1)], "s3")

    assert (exists.status_code, exists.json()["code"]) == (409, "already-exists")
    assert (moved.status_code, moved.json()["code"]) == (412, "version-mismatch")
    assert [row.values["1"] for row in node.scan(region).rows] == [1]
    assert node.write(region, [Write(b"a", 3, expect=version)], "s4").rows == 1


def test_given_a_delete_when_read_then_the_row_is_gone(node: Node) -> None:
    region = node.created()
    node.write(region, [Write(b"a", 1), Write(b"b", 2)], "s1")

    node.write(region, [Write(b"a")], "s2")

    assert [row.key for row in node.scan(region).rows] == ["62"]


def test_given_keys_when_got_then_those_that_are_there(node: Node) -> None:
    region = node.created()
    node.write(region, [Write(bytes([i]), i) for i in range(10)], "s1")

    found = Rows.model_validate_json(
        node.post(region, "get", keys=["05", "63", "02"], columns=[1]).content
    )

    assert [(row.key, row.values) for row in found.rows] == [("02", {"1": 2}), ("05", {"1": 5})]


def test_given_a_limit_when_scanned_then_the_last_key_continues_it(node: Node) -> None:
    region = node.created()
    node.write(region, [Write(bytes([i]), i) for i in range(10)], "s1")

    first = node.scan(region, limit=4)
    second = node.scan(region, limit=6, from_key=first.rows[-1].key + "00")

    assert (len(first.rows), first.more) == (4, True)
    assert ([row.key for row in second.rows], second.more) == (
        [f"{i:02x}" for i in range(4, 10)],
        False,
    )
    assert len(node.scan(region, from_key="02", to_key="05").rows) == 3


def test_given_rows_in_files_and_memory_when_scanned_as_arrow_then_all(node: Node) -> None:
    region = node.created()
    node.write(region, [Write(i.to_bytes(2), i) for i in range(3000)], "s1")
    flushed = node.http.post(f"{node.url}/node/v1/regions/{region}/flush")
    assert flushed.json()["stat"]["files"] == 1
    node.write(region, [Write(i.to_bytes(2), i) for i in range(3000, 4000)], "s2")

    answer = node.post(region, "scan", accept=ARROW)

    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column("c1").to_pylist() == list(range(4000))
    assert table.schema.names == ["_key", "_version", "c1", "c2"]


def test_given_an_empty_region_when_scanned_as_arrow_then_an_empty_stream(node: Node) -> None:
    region = node.created()

    answer = node.post(region, "scan", accept=ARROW, columns=[2])

    table = pa.ipc.open_stream(answer.content).read_all()
    assert (table.num_rows, table.schema.names) == (0, ["_key", "_version", "c2"])


def test_given_the_same_rows_in_two_regions_when_summed_then_the_same_checksum(
    node: Node,
) -> None:
    one, other = node.created(), node.created()
    node.write(one, [Write(b"a", 1), Write(b"b", 2)], "s1")
    node.write(other, [Write(b"b", 2)], "s1")
    assert node.checksum(one).checksum != node.checksum(other).checksum

    node.write(other, [Write(b"a", 1)], "s2")

    assert node.checksum(one).checksum == node.checksum(other).checksum
    assert node.checksum(other).rows == 2


@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        ({"epoch": 2}, 409, "stale-epoch"),
        ({"epoch": 0}, 409, "stale-epoch"),
        ({"table_id": TABLE + 1}, 404, "table-not-found"),
        ({"schema_version": 0}, 409, "schema-version-stale"),
    ],
)
def test_given_a_header_of_another_world_when_sent_then_refused(
    node: Node, header: dict[str, int], status: int, code: str
) -> None:
    region = node.created()

    write = node.post_batch(region, [Write(b"a", 1)], "s1", **header)
    read = node.post(region, "scan", "*/*", **header)

    assert (write.status_code, write.json()["code"]) == (status, code)
    assert (read.status_code, read.json()["code"]) == (status, code)
    assert node.scan(region).rows == []


def test_given_a_stale_epoch_when_refused_then_the_answer_says_the_current_one(
    node: Node,
) -> None:
    region = node.created(epoch=4)

    answer = node.post_batch(region, [Write(b"a", 1)], "s1", epoch=3)

    assert answer.json()["facts"]["epoch"] == 4


def test_given_a_region_that_is_not_here_when_used_then_not_found(node: Node) -> None:
    write = node.post_batch(1, [Write(b"a", 1)], "s1")
    read = node.post(1, "scan")

    assert (write.status_code, write.json()["code"]) == (404, "not-found")
    assert (read.status_code, read.json()["code"]) == (404, "not-found")


@pytest.mark.parametrize("region", ["007", "-1", "x", "1e3", "٣"])
def test_given_a_bad_region_id_when_asked_then_not_found(node: Node, region: str) -> None:
    answer = node.http.get(f"{node.url}/node/v1/regions/{region}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_given_a_lease_that_is_not_renewed_when_it_ends_then_nothing_is_done(
    node: Node,
) -> None:
    node.metasrv.told.grants_all = False
    region = node.created(lease=node.metasrv.lease_for(node.node_id, lease_ms=1))

    write = node.post_batch(region, [Write(b"a", 1)], "s1")
    read = node.post(region, "scan")

    assert (write.status_code, write.json()["code"]) == (503, "not-ready")
    assert (read.status_code, read.json()["code"]) == (503, "not-ready")

    node.metasrv.told.grants_all = True
    heard = len(node.metasrv.heard)
    node.metasrv.wait_for(lambda: len(node.metasrv.heard) >= heard + 3)
    assert node.scan(region).rows == []


def test_given_bodies_that_are_no_batch_when_sent_then_refused(node: Node) -> None:
    region = node.created()
    url = f"{node.url}/node/v1/regions/{region}/batch"
    plain = pa.BufferOutputStream()
    with pa.ipc.new_stream(plain, pa.schema([("_key", pa.binary())])):
        pass

    answers = [node.http.post(url, content=body) for body in (b"", b"no", bytes(plain.getvalue()))]

    assert [answer.status_code for answer in answers] == [422] * 3
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
