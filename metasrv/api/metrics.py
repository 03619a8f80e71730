"""The counters of one metasrv, in a registry of its own."""

from collections import Counter as Count

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from keys.tables import RegionState
from metasrv.nodes.status import NodeState
from metasrv.service.state import ServerState
from procedures.entry import State

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class ServerMetrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "metasrv_requests",
            "Answers by method, route and status",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "metasrv_request_seconds",
            "Time to answer",
            ["method", "route"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self._term = self._gauge("term", "Term of this server while it leads; 0: it does not")
        self._version = self._gauge("catalog_version", "Version of the catalog applied here")
        self._stale = self._gauge("catalog_stale", "1: the store has been silent for a lease")
        self._tables = self._gauge("tables", "Tables by state, as this server knows them", "state")
        self._regions = self._gauge("regions", "Regions of living tables by state", "state")
        self._procedures = self._gauge("procedures", "Procedures that are not over", "state")
        self._nodes = self._gauge("nodes", "Registered nodes by state, of the leader", "state")

    def _gauge(self, name: str, described: str, *labels: str) -> Gauge:
        return Gauge(f"metasrv_{name}", described, labels, registry=self._registry)

    def text(self, state: ServerState) -> bytes:
        """The exposition, with the gauges as they are now."""
        catalog = state.follower.catalog
        self._version.set(catalog.version)
        self._stale.set(int(state.is_stale))
        dropped = sum(table.dropped_at_ms is not None for table in catalog.tables.values())
        self._tables.labels("living").set(len(catalog.tables) - dropped)
        self._tables.labels("dropped").set(dropped)
        by_condition = Count(
            region.state
            for table in catalog.tables.values()
            if table.dropped_at_ms is None
            for region in table.route.region_routes
        )
        for condition in RegionState:
            self._regions.labels(condition.value).set(by_condition[condition])
        term = state.term if state.leads else None
        self._term.set(term.number if term else 0)
        living = term.manager.living() if term else ()
        by_state = Count(entry.state for _, entry in living)
        for one in State:
            self._procedures.labels(one.value).set(by_state[one])
        statuses = term.nodes.statuses() if term else ()
        by_health = Count(status.state for status in statuses)
        for health in NodeState:
            self._nodes.labels(health.value).set(by_health[health])
        return generate_latest(self._registry)
