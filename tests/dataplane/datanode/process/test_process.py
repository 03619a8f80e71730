"""A real datanode, killed, stopped and overtaken: what it acknowledged holds, and nothing else."""

import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from metasrv_base.errors import Refused
from tests.dataplane.datanode.conftest import StartNode, heard
from tests.dataplane.datanode.process.loads import keys_of
from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.dataplane.datanode.process.writer import Writer
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import Node, Write, new_region

pytestmark = pytest.mark.process

LEASE_MS = 2_500


def test_given_writers_when_the_node_is_killed_then_each_acknowledged_row_is_there(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    process, node = start_node(memtable_bytes="65536")
    region = node.created()

    acknowledged: set[bytes] = set()
    asked: set[bytes] = set()
    for epoch in (1, 2, 3):
        with ExitStack() as writing:
            names = [f"e{epoch}w{place}" for place in range(3)]
            writers = [writing.enter_context(Writer(node, region, name, epoch)) for name in names]
            for writer in writers:
                writer.wait_for(100)
            process.kill()
        for writer in writers:
            acknowledged |= writer.acknowledged
            asked |= writer.asked
        process.start()
        node.url = process.url
        heard(metasrv, process)
        assert node.order(node.open_order(region, epoch + 1)).results[0].error is None

    found = keys_of(node, region, epoch=4)
    assert acknowledged <= found <= asked
    assert len(acknowledged) >= 900


def test_given_a_stopped_node_when_its_lease_has_ended_then_it_acknowledges_nothing(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    metasrv.told.lease_ms = LEASE_MS
    process, node = start_node()
    region = node.created(lease=metasrv.lease_for("dn-1", LEASE_MS))
    node.write(region, [Write(b"before", 1)], "s0")
    process.send(signal.SIGSTOP)
    metasrv.told.grants_all = False
    with pytest.raises(httpx.ReadTimeout):
        post_within(node, region, "s1", seconds=2 * LEASE_MS / 1000)

    process.send(signal.SIGCONT)

    answers = [node.post_batch(region, [Write(b"after", 1)], f"t{n}") for n in range(20)]
    reads = [node.post(region, "scan") for _ in range(3)]
    assert {answer.status_code for answer in answers + reads} == {503}

    metasrv.told.grants_all = True
    seen = len(metasrv.heard)
    metasrv.wait_for(lambda: len(metasrv.heard) >= seen + 3)
    assert keys_of(node, region, epoch=1) == {b"before"}
    assert node.write(region, [Write(b"again", 1)], "s9").rows == 1


def post_within(node: Node, region: int, statement: str, seconds: float) -> None:
    with httpx.Client(trust_env=False, timeout=seconds) as impatient:
        Node(node.url, node.node_id, node.root, node.metasrv, http=impatient).post_batch(
            region, [Write(b"stopped", 1)], statement
        )


@pytest.mark.parametrize("in_place", [True, False], ids=["same root", "borrowed root"])
def test_given_another_leader_of_the_region_when_the_first_writes_then_it_stops(
    start_node: StartNode, metasrv: FakeMetasrv, in_place: bool
) -> None:
    _, first = start_node("dn-1")
    _, second = start_node("dn-2")
    region = first.created()
    with Writer(first, region, "w") as writer:
        writer.wait_for(50)

        changes = (
            {"root": first.root_of(region)} if in_place else {"borrows": [first.root_of(region)]}
        )
        opened = second.order(second.open_order(region, epoch=2, **changes))

        assert opened.results[0].error is None
        metasrv.wait_for(lambda: metasrv.reports("dn-1", str(region)) is None)

    assert writer.failed[0] in ("outcome-unknown", "stale-epoch", "not-found")
    assert writer.acknowledged <= keys_of(second, region, epoch=2)
    late = first.post_batch(region, [Write(b"late", 1)], "late")
    assert late.status_code in (404, 409)


def test_given_a_borrowing_region_when_listed_then_what_a_job_must_bring(
    start_node: StartNode,
) -> None:
    _, first = start_node("dn-1")
    _, second = start_node("dn-2")
    region = first.created()
    first.write(region, [Write(b"a", 1)], "s1")
    first.http.post(f"{first.url}/node/v1/regions/{region}/flush").raise_for_status()
    first.write(region, [Write(b"b", 2)], "s2")

    borrows = [first.root_of(region)]
    second.order(second.open_order(region, epoch=2, borrows=borrows))

    listed = second.http.get(f"{second.url}/node/v1/regions/{region}/borrowed").json()
    assert [file["root"] for file in listed["files"]] == borrows
    assert [segment["root"] for segment in listed["segments"]] == borrows


def test_given_tombstone_and_term_when_killed_then_they_are_remembered(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    process, node = start_node()
    metasrv.told.term = 5
    region = node.created()
    node.order(node.drop_order(region, epoch=1))
    process.kill()

    metasrv.told.term = 1
    process.start()
    node.url = process.url
    late = node.post_orders(node.close_order(region, epoch=1), term=4)
    again = node.order(node.create_order(region, epoch=2), term=5).results[0]

    assert (late.status_code, late.json()["code"]) == (409, "stale-epoch")
    assert again.error is not None
    assert again.error.code == "action-not-allowed"


def test_given_a_stop_signal_when_it_ends_then_cleanly(start_node: StartNode) -> None:
    process, node = start_node()
    node.write(node.created(), [Write(b"a", 1)], "s1")

    assert process.terminate() == 0


def test_given_a_node_that_runs_when_started_twice_then_the_second_is_refused(
    start_node: StartNode,
) -> None:
    process, _ = start_node()

    second = DatanodeProcess("dn-1", Path(process.root).parent, "http://127.0.0.1:1")
    with pytest.raises(AssertionError, match="did not start"):
        second.start()

    assert second.wait() == 78


def test_given_another_cluster_when_the_node_comes_back_then_it_refuses_to_serve(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    process, _ = start_node()
    process.kill()

    metasrv.told.cluster_id = "another"
    process.start()

    assert process.wait() == 78


def test_given_a_newer_process_with_its_id_when_it_beats_then_it_ends(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    process, _ = start_node()

    metasrv.told.refuse = Refused("stale-incarnation")

    assert process.wait() == 78


def test_given_a_silent_metasrv_when_another_is_named_then_it_is_asked(
    tmp_path: Path, metasrv: FakeMetasrv
) -> None:
    dead = "http://127.0.0.1:1"
    process = DatanodeProcess("dn-9", tmp_path / "dn-9", f"{dead},{metasrv.url}").start()

    heard(metasrv, process)

    process.close()


def test_given_many_writers_when_acknowledged_then_each_group_was_synced(
    start_node: StartNode, tmp_path: Path
) -> None:
    assert shutil.which("strace"), "counts system calls by strace"
    process, node = start_node()
    region = new_region()
    node.order(node.create_order(region))

    counted = tmp_path / "strace"
    with process.traced(counted, "fdatasync,fsync"):
        with ExitStack() as writing:
            for place in range(4):
                writing.enter_context(Writer(node, region, f"w{place}")).wait_for(50)
        body = node.http.get(f"{node.url}/node/v1/regions/{region}").json()

    syncs = sum(line.count("sync(") for line in counted.read_text().splitlines())
    assert syncs >= body["groups"] >= 50
