"""What a leader counts of the holders of schema leases."""

from prometheus_client import CollectorRegistry, Gauge, Histogram

from metasrv.holders.book import HolderBook


class HolderMetrics:
    def __init__(self, registry: CollectorRegistry, buckets: tuple[float, ...]) -> None:
        self._holders = Gauge(
            "metasrv_schema_lease_holders", "Registered frontends, of the leader", registry=registry
        )
        self._silent = Gauge(
            "metasrv_schema_lease_longest_silence_seconds",
            "Since the most silent frontend was heard",
            registry=registry,
        )
        self._waits = Gauge(
            "metasrv_schema_lease_waits",
            "Steps of schema changes that wait for a frontend",
            registry=registry,
        )
        self._took = Histogram(
            "metasrv_schema_lease_wait_seconds",
            "Of one step, until every frontend had followed",
            registry=registry,
            buckets=buckets,
        )

    def drained(self, waited_ms: int) -> None:
        """A step of a schema change has waited for the frontends."""
        self._took.observe(waited_ms / 1000)

    def look(self, now_ms: int, book: HolderBook | None) -> None:
        """Sets the gauges. None: this server does not lead."""
        entries = book.entries() if book else ()
        self._holders.set(len(entries))
        silent_ms = [now_ms - entry.heard_ms for entry in entries if entry.heard_ms is not None]
        self._silent.set(max(silent_ms, default=0) / 1000)
        self._waits.set(book.waits if book else 0)
