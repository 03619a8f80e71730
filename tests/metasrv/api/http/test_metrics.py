"""Each gauge and counter of /metrics moves when what it tells of happens."""

import re

import pytest

from keys.catalog.follower import Follower
from keys.store.kv import Get, Put, Request
from keys.store.measured import MeasuredKv
from keys.store.memory import MemoryKv
from metasrv.adapters.measured_jobs import MeasuredJobs
from metasrv.api.http.metrics import ServerMetrics
from metasrv.nodes.status import HeldBack, Hold
from metasrv_base.errors import Unavailable, Unknown
from metasrv_base.wire.node.inputs import Borrowed
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from procedures.ports import Progress
from tests.metasrv.api.fakes import NoJobs, ShiftedClock
from tests.metasrv.api.held_up import create_held_up
from tests.metasrv.api.rig import DEADLINE_MS, Server, leader, state_of

REGION = Borrowed(region_id="1", epoch=1, root="/r", columns=[], marks=[], files=[], segments=[])
WAIT = {"Prefer": "wait=10"}


async def told(one: Server) -> str:
    return (await one.client.get("/metrics")).text


async def test_given_failovers_when_they_end_then_each_counts_once_with_its_time() -> None:
    """A failover of a node has one of a table as its child."""
    async with leader() as one:
        await one.make()
        body = {"reason": "test", "node_id": "dn-1", "force": True}
        done = await one.client.post("/v1/failovers", json=body, headers=WAIT)
        said = await told(one)

        assert done.status_code == 200, done.text
        assert 'metasrv_procedures_total{kind="failover_table",outcome="succeeded"} 1.0' in said
        assert 'metasrv_failovers_total{outcome="succeeded"} 1.0' in said
        assert "metasrv_failover_duration_seconds_count 1.0" in said


@pytest.mark.slow
async def test_given_a_procedure_that_stands_still_then_its_age_shows_and_goes_with_it() -> None:
    async with leader() as one:
        await create_held_up(one)
        before = await told(one)
        one.clock.ahead_ms += 120_000
        ((_, entry),) = one.term.manager.living()
        while not entry.stalled:
            await one.term.manager.changed(deadline_ms=100)
        stalled = await told(one)
        one.nodes.gate.set()
        await entry.over.wait()
        after = await told(one)

        name = "metasrv_procedure_oldest_stalled_seconds"
        assert f"{name} 0.0" in before
        (age_s,) = re.findall(rf"^{name} (.*)$", stalled, re.MULTILINE)
        assert float(age_s) >= 120
        assert f"{name} 0.0" in after


async def test_given_a_store_when_asked_then_each_call_counts_by_its_end() -> None:
    clock, metrics = ShiftedClock(), ServerMetrics()
    kv = MeasuredKv(MemoryKv(clock, quota_bytes=1_000), clock, metrics.store_answered)
    await kv.txn(Request(writes=(Put(b"k", b"v"),)), deadline_ms=DEADLINE_MS)
    await kv.range(Get(b"k"), deadline_ms=DEADLINE_MS)
    lease = await kv.grant(1_000, deadline_ms=DEADLINE_MS)
    await kv.keep_alive(lease, deadline_ms=DEADLINE_MS)
    await kv.revoke(lease, deadline_ms=DEADLINE_MS)
    await kv.compact(1, deadline_ms=DEADLINE_MS)
    with pytest.raises(Unknown):
        await kv.txn(Request(writes=(Put(b"k", bytes(1_000)),)), deadline_ms=DEADLINE_MS)

    said = metrics.text(state_of("ms-1", kv, clock)).decode()

    count = "metasrv_etcd_request_duration_seconds_count"
    for call in ("txn", "range", "grant", "keep_alive", "revoke", "compact"):
        assert f'{count}{{code="ok",op="{call}"}} 1.0' in said
    assert f'{count}{{code="no-space",op="txn"}} 1.0' in said


async def test_given_a_catalog_that_falls_behind_then_the_lag_shows_until_it_is_there() -> None:
    async with leader() as led:
        metrics, state = ServerMetrics(), state_of("ms-2", led.kv, led.clock)
        state.follower = Follower(led.kv, led.clock, deadline_ms=10)
        await state.follower.log.load()
        level = metrics.text(state).decode()
        await led.make()
        with pytest.raises(Unavailable):
            await state.follower.log.look()
        behind = metrics.text(state).decode()
        await state.follower.log.load()

        assert "metasrv_etcd_watch_lag_revisions 0.0" in level
        assert "metasrv_etcd_watch_lag_revisions 0.0" not in behind
        assert "metasrv_etcd_watch_lag_revisions 0.0" in metrics.text(state).decode()


class OneJob(NoJobs):
    """The second is refused."""

    def __init__(self) -> None:
        self.is_over = False

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        if self.is_over:
            raise Unavailable("storage-full")
        self.is_over = True
        return MoveResult(
            job_id=job.job_id,
            files=[],
            rows_in=9,
            rows_out=7,
            bytes_in=90,
            bytes_out=70,
            copied_files=0,
            rewritten_segments=0,
        )


async def test_given_spark_jobs_when_they_end_then_their_rows_bytes_and_outcomes_count() -> None:
    clock, metrics = ShiftedClock(), ServerMetrics()
    jobs = MeasuredJobs(OneJob(), clock, metrics.job_ended)
    job = MoveJob(job_id="j", procedure="p", attempt="attempts/a", borrowed=REGION)
    await jobs.move(job, progress=lambda done, total, unit: None)
    with pytest.raises(Unavailable):
        await jobs.move(job, progress=lambda done, total, unit: None)

    said = metrics.text(state_of("ms-1", MemoryKv(clock), clock)).decode()

    assert 'metasrv_spark_jobs_total{outcome="done"} 1.0' in said
    assert 'metasrv_spark_jobs_total{outcome="storage-full"} 1.0' in said
    assert "metasrv_spark_job_duration_seconds_count 2.0" in said
    assert "metasrv_spark_moved_rows_total 7.0" in said
    assert "metasrv_spark_moved_bytes_total 70.0" in said


async def test_given_a_failover_that_is_held_back_then_node_and_metrics_say_so() -> None:
    async with leader(nodes=2) as one:
        now_ms = one.clock.wall_ms()
        hold = Hold("maintenance", "it is switched off", now_ms + 60_000)
        one.term.nodes.held = {"dn-2": HeldBack(hold, now_ms - 5_000)}

        shown = (await one.client.get("/v1/nodes")).json()["nodes"]
        said = (await one.client.get("/metrics")).text

        assert shown[0]["failover_held"] is None
        held = shown[1]["failover_held"]
        assert (held["reason"], held["ends"]) == ("maintenance", "it is switched off")
        assert held["since"] < held["until"]
        assert "metasrv_failovers_held 1.0" in said
        assert "metasrv_failover_held_seconds 5." in said
