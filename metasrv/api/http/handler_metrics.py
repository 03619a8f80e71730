"""The metrics of handlers of the catalog log, and of those who read many keys at one revision."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from metasrv.service.state.state import ServerState

READERS = ("backup", "load", "rebuild", "watch")


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
        """Sets the gauge. *handling_ms*: the time for which a handler has run; 0: none runs."""
        self._running.set(handling_ms / 1000)


class ReaderMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._pins = Gauge(
            "metasrv_revision_pins",
            "Revisions that this server keeps from being compacted",
            registry=registry,
        )
        self._oldest = Gauge(
            "metasrv_revision_pin_oldest_seconds",
            "Time since this server took the oldest of them; 0: it has none",
            registry=registry,
        )
        self._restarts = Gauge(
            "metasrv_reader_restarts",
            "Times that etcd was compacted under a reader of this server, which began again",
            ("reader",),
            registry=registry,
        )

    def look(self, state: ServerState) -> None:
        pins, now_ms = state.pins, state.clock.wall_ms()
        self._pins.set(len(pins.held))
        oldest_ms = pins.oldest_ms
        self._oldest.set(0 if oldest_ms is None else max(0, now_ms - oldest_ms) / 1000)
        restarts = pins.restarts + state.follower.log.retries.restarts
        for reader in READERS:
            self._restarts.labels(reader).set(restarts[reader])
