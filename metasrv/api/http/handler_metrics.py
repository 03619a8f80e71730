"""The metrics of update handlers of the catalog log."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class HandlerMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._slow = Counter(
            "metasrv_update_handlers_slow",
            "Handlers of a catalog update that took over a second",
            ("name",),
            registry=registry,
        )
        self._running = Gauge(
            "metasrv_update_handler_running_seconds",
            "Time of the handler that runs now; 0: none does",
            registry=registry,
        )

    def slow(self, name: str) -> None:
        """Counts a handler that has taken over a second, and runs on."""
        self._slow.labels(name).inc()

    def look(self, handling_ms: int) -> None:
        """*handling_ms*: the time for which a handler has not ended; 0: none runs."""
        self._running.set(handling_ms / 1000)
