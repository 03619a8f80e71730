"""Regions with copies on real datanodes: no acknowledged row needs the dead leader's disk."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from dataplane.region.copies.promises import PROMISE_MS
from metasrv_base.clock import SystemClock
from metasrv_base.wire.node.batches import Rows
from metasrv_base.wire.node.orders import OrderResult
from tests.dataplane.datanode.conftest import StartNode, heard
from tests.dataplane.datanode.process.copied import CopiedRegion, lost, started, until

pytestmark = pytest.mark.process

CLOCK = SystemClock()


def test_given_a_killed_leader_without_its_disk_when_the_copy_leads_then_every_row_is_there(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"}, min_in_sync=2)
    region.create()
    for number in range(50):
        region.write(number)
    lost(region, processes["dn-1"])

    region.min_in_sync = 1
    region.promote("dn-2")

    assert region.rows() == set(range(50))
    region.write(50)
    region.write(7)  # sent again: it was applied by the leader before
    assert region.rows() == set(range(51))


def test_given_three_copies_when_leader_and_then_the_next_die_then_every_row_is_there(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2", "dn-3"])
    in_sync = {"dn-1": "leader", "dn-2": "in-sync", "dn-3": "in-sync"}
    region = CopiedRegion(nodes, in_sync)  # type: ignore[arg-type]
    region.create()
    for number in range(20):
        region.write(number)
    lost(region, processes["dn-1"])

    region.promote("dn-2")
    for number in range(20, 40):
        region.write(number)
    lost(region, processes["dn-2"])
    region.promote("dn-3")
    region.write(40)

    assert region.rows() == set(range(41))


def test_given_a_copy_that_is_gone_when_a_row_is_written_then_it_waits_until_the_set_shrinks(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)
    before = logged_bytes(region)
    processes["dn-2"].kill()
    with ThreadPoolExecutor(1) as writers:
        waits = writers.submit(region.write, 2)
        until(region.leader, lambda: logged_bytes(region) > before)
        assert not waits.done()

        region.change(dn_2="learner")
        region.tell("dn-1")
        waits.result(120)

    assert region.rows() == {1, 2}
    region.min_in_sync, region.version = 2, region.version + 1
    region.tell("dn-1")
    assert region.refused(3) == "too-few-copies"
    assert region.rows() == {1, 2}, "reads go on"


def test_given_a_copy_that_left_below_the_minimum_when_the_leader_is_lost_then_it_leads(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"}, min_in_sync=2)
    region.create()
    region.write(1)
    before = logged_bytes(region)
    processes["dn-2"].send(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as writers:
        waits = writers.submit(region.refused, 2)
        until(region.leader, lambda: logged_bytes(region) > before)
        region.eligible.add("dn-2")
        region.change(dn_2="learner")
        region.tell("dn-1")
        assert waits.result(120) == "outcome-unknown"

    assert region.rows() == {1}, "the copy may lack the other"
    assert region.refused(3) == "too-few-copies"
    processes["dn-2"].send(signal.SIGCONT)
    lost(region, processes["dn-1"])
    region.eligible, region.min_in_sync = set(), 1
    region.promote("dn-2")
    assert {1} <= region.rows() <= {1, 2}
    region.write(4)


def test_given_a_copy_that_stands_still_when_it_goes_on_then_the_row_is_acknowledged(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"}, min_in_sync=2)
    region.create()
    region.write(1)
    before = logged_bytes(region)
    processes["dn-2"].send(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as writers:
        waits = writers.submit(region.write, 2)
        until(region.leader, lambda: logged_bytes(region) > before)
        assert not waits.done()
        until(region.leader, lambda: code(region, "scan") == "not-ready")  # its promise ends
        processes["dn-2"].send(signal.SIGCONT)
        waits.result(120)

    lost(region, processes["dn-1"])
    region.min_in_sync = 1
    region.promote("dn-2")
    assert region.rows() == {1, 2}


def test_given_a_deposed_leader_when_it_follows_then_its_row_of_before_is_cut(
    start_node: StartNode,
) -> None:
    """On a busy machine the next leader has the row already, which was sent in time."""
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)
    before = logged_bytes(region)
    processes["dn-2"].send(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as writers:
        waits = writers.submit(region.refused, 2)
        until(region.leader, lambda: logged_bytes(region) > before)
        processes["dn-1"].send(signal.SIGSTOP)
        processes["dn-2"].send(signal.SIGCONT)
        region.gone = {"dn-1"}
        region.promote("dn-2")
        region.write(3)
        was_sent = 2 in region.rows()
        processes["dn-1"].send(signal.SIGCONT)
        region.gone.clear()
        region.tell("dn-1")
        assert waits.result(120) in ("outcome-unknown", "stale-epoch")

    region.change(dn_1="in-sync")
    region.tell("dn-1", "dn-2")
    region.write(4)
    lost(region, processes["dn-2"])
    region.promote("dn-1")
    assert region.rows() == ({1, 2, 3, 4} if was_sent else {1, 3, 4})


def test_given_a_leader_that_started_again_then_it_reports_that_it_needs_a_new_epoch(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"}, min_in_sync=2)
    region.create()
    region.write(1)
    processes["dn-1"].kill()
    processes["dn-1"].start()
    node = region.leader
    node.url, metasrv = processes["dn-1"].url, node.metasrv
    metasrv.wait_for(lambda: metasrv.last("dn-1").incarnation == processes["dn-1"].incarnation)

    (result,) = node.order(region.open_order("dn-1")).results
    assert result.error is not None
    assert result.error.code == "not-ready"
    metasrv.wait_for(lambda: metasrv.reports("dn-1", str(region.region)) == "restarted")

    region.epoch, region.version = 2, region.version + 1
    region.tell("dn-1", "dn-2")
    region.write(2)
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    region.min_in_sync, region.version = 1, region.version + 1
    region.tell("dn-2")
    assert region.rows() == {1, 2}


def test_given_both_nodes_killed_when_they_are_back_then_every_row_is_there(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"}, min_in_sync=2)
    region.create()
    for number in range(10):
        region.write(number)
    for name, process in processes.items():
        process.kill()
        process.start()
        nodes[name].url = process.url
        heard(nodes[name].metasrv, process)

    region.epoch, region.version = 2, region.version + 1
    region.tell("dn-1", "dn-2")
    region.write(10)
    region.change(dn_2=None)
    region.min_in_sync = 1
    region.tell("dn-1")

    assert region.rows() == set(range(11))


def test_given_a_learner_when_it_is_added_later_then_it_is_sent_all_and_counts_for_nothing(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader"})
    region.create()
    for number in range(10):
        region.write(number)
    region.change(dn_2="learner")
    region.take("dn-2", region.create_order("dn-2"))
    region.tell("dn-1")
    region.write(10)

    assert region.rows() == set(range(11))
    processes["dn-2"].kill()
    region.write(11)
    assert region.rows() == set(range(12))


def test_given_a_leader_that_stood_still_when_another_leads_then_it_answers_no_read_without_its_row(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)
    assert region.rows() == {1}, "read under the promise of dn-2"
    former = region.leader
    processes["dn-1"].send(signal.SIGSTOP)
    stopped_ms = CLOCK.mono_ms()
    region.gone = {"dn-1"}
    region.promote("dn-2")
    answer = region.post(2)
    if CLOCK.mono_ms() - stopped_ms < PROMISE_MS / 2:
        assert answer.json()["code"] == "not-ready", "it promised dn-1 within the last 2 s"
    region.write(2)
    processes["dn-1"].send(signal.SIGCONT)

    for _ in range(20):
        answer = former.post(region.region, "scan", epoch=1)
        assert answer.status_code == 503, answer.text
    assert region.rows() == {1, 2}, "the former leader is a learner: the new one is alone"


def logged_bytes(region: CopiedRegion) -> int:
    """The bytes in the leader's log, with those of a group that waits for copies."""
    return sum(each["wal_bytes"] for each in region.leader.stats())


def code(region: CopiedRegion, call: str) -> str | None:
    answer = region.leader.post(region.region, call, epoch=region.epoch)
    return None if answer.status_code == 200 else str(answer.json()["code"])


def test_given_a_learner_that_has_all_rows_then_it_joins_the_set_and_may_lead(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader"})
    region.create()
    for number in range(10):
        region.write(number)
    metasrv = region.leader.metasrv
    metasrv.told.changes_copies = True
    region.change(dn_2="learner")
    region.take("dn-2", region.create_order("dn-2"))
    region.tell("dn-1")
    metasrv.wait_for(lambda: bool(metasrv.changes_asked))
    region.write(10)  # in the set or not, it is required from here on

    (change,) = metasrv.changes_asked[0].changes
    assert (change.change, change.node, change.copies_version) == ("join", "dn-2", 2)
    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.rows() == set(range(11))


def test_given_a_copy_that_is_silent_then_it_leaves_the_set_and_writes_go_on(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)
    region.leader.metasrv.told.changes_copies = True
    processes["dn-2"].send(signal.SIGSTOP)

    region.write(2)  # waits until its promise has ended

    (change,) = region.leader.metasrv.changes_asked[0].changes
    assert (change.change, change.node, change.reason) == ("leave", "dn-2", "no answer for 2 s")
    assert region.rows() == {1, 2}
    processes["dn-2"].send(signal.SIGCONT)


def test_given_rows_of_a_declared_age_when_a_copy_is_read_then_it_has_them_until_it_is_cut_off(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    for number in range(20):
        region.write(number)
    written_ms = CLOCK.mono_ms()

    until(nodes["dn-2"], lambda: copy_has(region, "dn-2", max_lag_ms=60_000) == set(range(20)))
    assert CLOCK.mono_ms() - written_ms < 60_000
    plain = nodes["dn-2"].post(region.region, "scan", epoch=region.epoch)
    assert plain.status_code == 404, "without a declared age the leader alone answers"

    processes["dn-1"].send(signal.SIGSTOP)
    asked_ms = CLOCK.mono_ms()
    until(nodes["dn-2"], lambda: copy_has(region, "dn-2", max_lag_ms=4_000) is None)
    assert copy_has(region, "dn-2", max_lag_ms=3_600_000) == set(range(20))
    assert CLOCK.mono_ms() - asked_ms > 1_500, "rows of the last second were known"
    processes["dn-1"].send(signal.SIGCONT)
    until(nodes["dn-2"], lambda: copy_has(region, "dn-2", max_lag_ms=4_000) == set(range(20)))
    assert nodes["dn-2"].post(region.region, "scan", max_lag_ms=0).status_code == 422


def copy_has(region: CopiedRegion, name: str, max_lag_ms: int) -> set[int] | None:
    """The values of all rows at that node; None: it knows of none so young."""
    answer = region.nodes[name].post(
        region.region, "scan", epoch=region.epoch, max_lag_ms=max_lag_ms
    )
    assert answer.status_code in (200, 503), answer.text
    if answer.status_code == 503:
        assert answer.json()["code"] == "not-ready"
        return None
    return {int(str(row.values["1"])) for row in Rows.model_validate_json(answer.content).rows}


@pytest.mark.case("greptime 96")
def test_given_changes_of_the_schema_when_each_leader_dies_then_the_next_has_them(
    start_node: StartNode,
) -> None:
    processes, nodes = started(start_node, ["dn-1", "dn-2", "dn-3"])
    in_sync = {"dn-1": "leader", "dn-2": "in-sync", "dn-3": "in-sync"}
    region = CopiedRegion(nodes, in_sync)  # type: ignore[arg-type]
    region.create()
    region.write(1)
    floor = changed(region, version=2, mark="reorg")
    assert floor > 0
    assert region.refused(2) == "schema-version-stale"
    region.schema_version = 2
    region.write(2)
    lost(region, processes["dn-1"])

    region.promote("dn-2")

    assert region.rows() == {1, 2}
    region.schema_version = 1
    assert region.refused(3) == "schema-version-stale"
    assert changed(region, version=2, mark="reorg") == floor, "it is the mark of before"
    region.schema_version = 3
    newer = region.open_order("dn-2").model_copy(update={"schema_version": 3, "schema_floor": 3})
    region.take("dn-2", newer)
    region.write(3)
    lost(region, processes["dn-2"])
    region.promote("dn-3")
    assert region.rows() == {1, 2, 3}
    region.schema_version = 2
    assert region.refused(4) == "schema-version-stale"


def changed(region: CopiedRegion, version: int, mark: str | None = None) -> int:
    """Orders the leader to raise its floor; returns its answer."""
    node, answers = region.leader, list[OrderResult]()

    def is_done() -> bool:
        order = node.schema_order(region.region, version, epoch=region.epoch, mark=mark)
        answers.append(node.order(order).results[0])
        return answers[-1].error is None

    until(node, is_done)
    assert answers[-1].floor_version is not None
    return answers[-1].floor_version
