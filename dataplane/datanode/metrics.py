"""The counters of one datanode, in a registry of its own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dataplane.datanode.membership import Membership
from dataplane.datanode.regions import Regions

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class NodeMetrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "datanode_requests",
            "Answers by call and status",
            ["call", "status"],
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "datanode_request_seconds",
            "Time to answer",
            ["call"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self._regions = Gauge(
            "datanode_regions", "Regions by state", ["state"], registry=self._registry
        )
        self._sequence = Gauge(
            "datanode_heartbeat_sequence", "Heartbeats sent", registry=self._registry
        )

    def text(self, regions: Regions, membership: Membership) -> bytes:
        """The exposition, with the gauges as they are now."""
        states = [stat.state for stat in regions.stats()]
        for state in ("opening", "open", "lost"):
            self._regions.labels(state).set(states.count(state))
        self._sequence.set(membership.sequence)
        return generate_latest(self._registry)
