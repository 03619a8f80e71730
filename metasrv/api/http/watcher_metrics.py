"""Metrics of the watchers of the catalog's events."""

from prometheus_client import CollectorRegistry, Gauge

from metasrv.service.state.state import ServerState

REASONS = ("stalled", "behind", "slow")


class WatcherMetrics:
    """Gauges that are set when the metrics are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._open = Gauge(
            "metasrv_event_watchers", "Streams of catalog events that are open", registry=registry
        )
        self._catching_up = Gauge(
            "metasrv_event_watchers_catching_up",
            "Of those, the ones that are told old versions",
            registry=registry,
        )
        self._lost = Gauge(
            "metasrv_event_watchers_lost",
            "Watchers disconnected because they were too slow",
            ["reason"],
            registry=registry,
        )

    def look(self, state: ServerState) -> None:
        self._open.set(state.watchers.open)
        self._catching_up.set(state.catching_up.open)
        for reason in REASONS:
            self._lost.labels(reason).set(state.watchers.lost[reason])
