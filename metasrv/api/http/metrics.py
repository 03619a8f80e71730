"""The counters of one metasrv, in a registry of its own."""

from collections import Counter as Count
from collections.abc import Collection
from functools import lru_cache
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from keys.model.records import ProcedureHistory
from keys.model.tables import RegionState
from metasrv.adapters.measured_jobs import JobEnd
from metasrv.adapters.spark_jobs import SparkJobs
from metasrv.api.http.handler_metrics import HandlerMetrics, ReaderMetrics
from metasrv.api.http.holder_metrics import HolderMetrics
from metasrv.api.http.tenant_metrics import TenantMetrics
from metasrv.api.http.watcher_metrics import WatcherMetrics
from metasrv.leadership.copies.zone_followers import led_outside
from metasrv.leadership.term import Term
from metasrv.nodes.copy_risk import CopyRisk
from metasrv.nodes.quarantined import QuarantinedFolders
from metasrv.nodes.status import NodeState
from metasrv.service.cluster.failover_plan import FAILOVERS
from metasrv.service.state.state import ServerState
from metasrv_base.wire.node.jobs import MoveResult
from procedures.context import WaitKind
from procedures.engine.control import State
from procedures.kinds.registry import KINDS

SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    60.0,
    300.0,
    1_800.0,
)

CHILDREN_KEPT = 1_024  # found lately, by their labels: to find one takes longer than to count

WAITS = ("lock", "admission", *get_args(WaitKind))


class ServerMetrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter(
            "requests", "Answers by method, route and status", "method", "route", "status"
        )
        self._request_took = self._seconds("request_seconds", "Time to answer", "method", "route")
        self._ended = self._counter("procedures", "Procedures that ended", "kind", "outcome")
        self._took = self._seconds("procedure_duration_seconds", "Submission to end", "kind")
        self._step_took = self._seconds(
            "procedure_step_duration_seconds", "Time of one step, with its waits", "kind", "step"
        )
        self._resumes = self._counter("procedure_resumes", "Procedures resumed by a new leader")
        self._term = self._gauge("term", "Term of this server while it leads; 0: it does not")
        self._version = self._gauge("catalog_version", "Version of the catalog applied here")
        self._stale = self._gauge("catalog_stale", "1: etcd has not answered for a lease")
        self._tables = self._gauge("tables", "Tables by state, as this server knows them", "state")
        self._regions = self._gauge("regions", "Regions of living tables by state", "state")
        self._procedures = self._gauge("procedures_living", "Procedures that are not over", "state")
        self._nodes = self._gauge("nodes", "Nodes by state, as the leader sees them", "state")
        self._cordoned = self._gauge("nodes_cordoned", "Nodes that take no new regions")
        self.holders = HolderMetrics(self._registry, SECONDS)
        self._tenants = TenantMetrics(self._registry)
        self.handlers = HandlerMetrics(self._registry)
        self._watchers = WatcherMetrics(self._registry)
        self._readers = ReaderMetrics(self._registry)
        self._leader = self._gauge("leader", "1: this server leads")
        self._running = self._gauge("procedures_running", "Procedures that run now", "kind")
        self._waiting = self._gauge("procedures_waiting", "Waiting procedures by reason", "reason")
        self._maintenance = self._gauge("maintenance", "1: maintenance stops automatic failover")
        self._paused = self._gauge("procedures_paused", "1: no procedure begins a step")
        self._skew = self._gauge("region_skew_ratio", "Regions of the fullest node over the mean")
        self._at_risk = self._gauge("regions_at_risk", "Regions short of copies in sync", "risk")
        self._outside = self._gauge("regions_led_outside_preferred_zones", "Led in another zone")
        self._quarantined = self._gauge("quarantined_folders", "Folders in quarantine on nodes")
        self._quarantined_bytes = self._gauge("quarantined_bytes", "Bytes of these folders")
        self._stalled = self._gauge(
            "procedure_oldest_stalled_seconds",
            "Longest time without progress of a stalled one; 0: none",
        )
        self._history = self._gauge("history_bytes", "Bytes of etcd that ended procedures take")
        self._early = self._gauge("history_deleted_early", "Histories deleted early, for bytes")
        self._failovers = self._counter("failovers", "Failovers that ended", "outcome")
        self._held = self._gauge("failovers_held", "Dead nodes whose failover is held back")
        self._held_for = self._gauge(
            "failover_held_seconds", "Time since the oldest failover held back; 0: none is"
        )
        self._failover_took = self._seconds("failover_duration_seconds", "Submission to end")
        self._store_took = self._seconds(
            "etcd_request_duration_seconds", "Of one request to etcd", "op", "code"
        )
        self._lag = self._gauge("etcd_watch_lag_revisions", "Revisions the catalog lacks")
        self._spark_up = self._gauge("spark_driver_up", "1: the Spark driver takes jobs")
        self._spark_starts = self._gauge("spark_driver_starts", "Drivers that became ready")
        self._spark_jobs = self._counter("spark_jobs", "Spark jobs that ended", "outcome")
        self._spark_took = self._seconds("spark_job_duration_seconds", "Time of one Spark job")
        self._moved_rows = self._counter("spark_moved_rows", "Rows that Spark jobs have written")
        self._moved_bytes = self._counter("spark_moved_bytes", "Bytes that Spark jobs have written")
        self._build = self._gauge("build_info", "1, with the version of this server", "version")
        self._answer = lru_cache(CHILDREN_KEPT)(self._answer_by)
        self._store_call = lru_cache(CHILDREN_KEPT)(self._store_took.labels)

    def _gauge(self, name: str, described: str, *labels: str) -> Gauge:
        return Gauge(f"metasrv_{name}", described, labels, registry=self._registry)

    def _counter(self, name: str, described: str, *labels: str) -> Counter:
        return Counter(f"metasrv_{name}", described, labels, registry=self._registry)

    def _seconds(self, name: str, described: str, *labels: str) -> Histogram:
        return Histogram(
            f"metasrv_{name}", described, labels, registry=self._registry, buckets=SECONDS
        )

    def ended(self, history: ProcedureHistory) -> None:
        """Counts a procedure that ended here, whoever began it."""
        last = history.last
        self._ended.labels(last.kind, history.outcome.value).inc()
        self._took.labels(last.kind).observe((history.finished_at_ms - last.submitted_at_ms) / 1000)
        for beat in last.timeline:
            self._step_took.labels(last.kind, beat.step).observe(beat.ms / 1000)
        self._resumes.inc(last.resumed)
        if last.kind in FAILOVERS and last.parent is None:
            self._failovers.labels(history.outcome.value).inc()
            took_ms = history.finished_at_ms - last.submitted_at_ms
            self._failover_took.observe(took_ms / 1000)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request of a client or a node."""
        count, took = self._answer(method, route, status)
        count.inc()
        took.observe(seconds)

    def refused(self, status: int) -> None:
        """A request without the right token: no route has seen it."""
        self._requests.labels("", "refused", str(status)).inc()

    def _answer_by(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        count = self._requests.labels(method, route, str(status))
        return count, self._request_took.labels(method, route)

    def store_answered(self, call: str, code: str, took_ms: int) -> None:
        self._store_call(call, code).observe(took_ms / 1000)

    def job_ended(self, end: JobEnd) -> None:
        self._spark_jobs.labels(end.outcome).inc()
        self._spark_took.observe(end.took_ms / 1000)
        if isinstance(end.result, MoveResult):
            self._moved_rows.inc(end.result.rows_out)
            self._moved_bytes.inc(end.result.bytes_out)

    def watch_spark(self, jobs: SparkJobs) -> None:
        """Registers the Spark driver, whose state is read with each read of the metrics."""
        self._spark_up.set_function(lambda: float(jobs.is_driver_ready))
        self._spark_starts.set_function(lambda: float(jobs.starts))

    def text(self, state: ServerState) -> bytes:
        """The exposition, with the gauges as they are now."""
        catalog = state.follower.catalog
        self._version.set(catalog.version)
        self._stale.set(int(state.is_stale))
        self._lag.set(state.follower.log.lag_revisions)
        self.handlers.look(state.handling_ms)
        self._readers.look(state)
        dropped = sum(map(len, catalog.gone.values()))
        self._tables.labels("living").set(len(catalog.tables) - dropped)
        self._tables.labels("dropped").set(dropped)
        for condition in RegionState:
            self._regions.labels(condition.value).set(catalog.states.get(condition, 0))
        term = state.term if state.leads else None
        self._term.set(term.number if term else 0)
        living = term.manager.living() if term else ()
        by_state = Count(entry.state for _, entry in living)
        for procedure_state in State:
            self._procedures.labels(procedure_state.value).set(by_state[procedure_state])
        statuses = term.nodes.statuses() if term else ()
        by_health = Count(status.state for status in statuses)
        for health in NodeState:
            self._nodes.labels(health.value).set(by_health[health])
        self._cordoned.set(sum(status.node.cordon is not None for status in statuses))
        self._skew.set(skew([catalog.led_by(status.node.node_id) for status in statuses]))
        zone_of = {status.node.node_id: status.node.zone for status in statuses}
        self._outside.set(led_outside(catalog, zone_of) if term else 0)
        self._build.labels(state.facts.version).set(1)
        self._watchers.look(state)
        self._of_term(state, term)
        return generate_latest(self._registry)

    def _of_term(self, state: ServerState, term: Term | None) -> None:
        """Sets the metrics that only a leader knows; a follower shows none of them."""
        self._leader.set(int(term is not None))
        self._tenants.look(state.follower.catalog, term.manager.tenants if term else None)
        living = [entry for _, entry in term.manager.living()] if term else []
        running = Count(entry.held.record.kind for entry in living if entry.is_run)
        for kind in KINDS:
            self._running.labels(kind).set(running[kind])
        waits = Count[str](wait.kind for entry in living for wait in entry.live.waits)
        now_ms = state.clock.wall_ms()
        still_ms = [now_ms - entry.last_moved_ms() for entry in living if entry.stalled]
        self._stalled.set(max(still_ms, default=0) / 1000)
        waits["lock"] = sum(entry.waits for entry in living)
        waits["admission"] = sum(entry.state is State.QUEUED for entry in living)
        for reason in WAITS:
            self._waiting.labels(reason).set(waits[reason])
        refused = sum(term.nodes.refused().values()) if term else 0
        self.holders.look(state.clock.mono_ms(), term.holders if term else None, refused)
        held = term.nodes.held.values() if term else ()
        self._held.set(len(held))
        since_ms = min((hold.since_ms for hold in held), default=now_ms)
        self._held_for.set((now_ms - since_ms) / 1000)
        risk = term.copy_risk if term else CopyRisk()
        self._at_risk.labels("below_min_in_sync").set(risk.below_minimum)
        self._at_risk.labels("on_one_disk").set(risk.on_one_disk)
        self._at_risk.labels("min_in_sync_lowered").set(risk.minimum_lowered)
        quarantined = term.quarantined if term else QuarantinedFolders()
        self._quarantined.set(quarantined.folders)
        self._quarantined_bytes.set(quarantined.size_bytes)
        self._history.set(term.tally.size_bytes if term else 0)
        self._early.set(term.tally.early if term else 0)
        settings = term.settings if term else None
        self._maintenance.set(int(settings is not None and settings.maintenance is not None))
        self._paused.set(int(settings is not None and settings.values.procedures.paused))


def skew(regions: Collection[int]) -> float:
    """1: all nodes lead as many. 0: there is none to lead."""
    total = sum(regions)
    return max(regions) * len(regions) / total if total else 0.0
