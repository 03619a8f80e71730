"""The counters of one frontend, in a registry of its own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class FrontendMetrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "frontend_requests",
            "Answers by call and status",
            ["call", "status"],
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "frontend_request_seconds",
            "Time to answer",
            ["call"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self.rows = Counter(
            "frontend_rows", "Rows written, by operation", ["op"], registry=self._registry
        )
        self._copy_reads = Counter(
            "frontend_copy_reads",
            "Requests to copies of reads with max_lag, by outcome",
            ["outcome"],
            registry=self._registry,
        )
        self._catalog_version = Gauge(
            "frontend_catalog_version", "Version of the catalog applied", registry=self._registry
        )
        self._lease_seconds = Gauge(
            "frontend_schema_lease_seconds",
            "Time until the schema lease ends",
            registry=self._registry,
        )
        self._transactions = Gauge(
            "frontend_transactions", "Open transactions", registry=self._registry
        )

    def refused(self, status: int) -> None:
        """A request without the right token."""
        self.requests.labels("refused", str(status)).inc()

    def answered_by(self, outcome: str) -> None:
        """A read with `max_lag`: `copy` or `leader` answered, or a copy was `too-old` or `failed`,
        and another was asked."""
        self._copy_reads.labels(outcome).inc()

    def text(self, catalog_version: int, lease_left_ms: int, transactions: int) -> bytes:
        """The exposition, with the gauges as they are now."""
        self._catalog_version.set(catalog_version)
        self._lease_seconds.set(lease_left_ms / 1000)
        self._transactions.set(transactions)
        return generate_latest(self._registry)
