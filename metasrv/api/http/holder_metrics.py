"""Metrics of a leader about the holders of schema leases."""

from prometheus_client import CollectorRegistry, Gauge, Histogram

from metasrv.holders.audit import SchemaAudit, versions_in_use
from metasrv.holders.sync import HolderSync


class HolderMetrics:
    def __init__(self, registry: CollectorRegistry, buckets: tuple[float, ...]) -> None:
        self._holders = Gauge(
            "metasrv_schema_lease_holders",
            "Registered frontends, as the leader sees them",
            registry=registry,
        )
        self._silent = Gauge(
            "metasrv_schema_lease_longest_silence_seconds",
            "Time since the frontend that is silent longest was heard",
            registry=registry,
        )
        self._waits = Gauge(
            "metasrv_schema_lease_waits",
            "Steps of schema changes that wait for a frontend",
            registry=registry,
        )
        self._took = Histogram(
            "metasrv_schema_lease_wait_seconds",
            "Time that one step waited for all frontends",
            registry=registry,
            buckets=buckets,
        )

        self._versions = Gauge(
            "metasrv_schema_versions_in_use_max",
            "Most schema versions of one table that statements use",
            registry=registry,
        )
        self._checks = Gauge(
            "metasrv_schema_audit_checks", "Pins checked in this term", registry=registry
        )
        self._found = Gauge(
            "metasrv_schema_audit_violations",
            "Pins in this term at a version below the floor",
            registry=registry,
        )
        self._stopped = Gauge(
            "metasrv_schema_audit_stopped_tables",
            "Tables whose schema changes such a pin stops",
            registry=registry,
        )

        self._refused = Gauge(
            "metasrv_schema_floor_refusals",
            "Batches and reads that regions refused below their floors, since their nodes started",
            registry=registry,
        )

    def drained(self, waited_ms: int) -> None:
        """A step of a schema change has waited for the frontends."""
        self._took.observe(waited_ms / 1000)

    def look(self, now_ms: int, holders: HolderSync | None, refused: int) -> None:
        """Sets the gauges. None: this server does not lead. *refused*: by regions."""
        self._refused.set(refused)
        book = holders.book if holders else None
        entries = book.entries() if book else ()
        self._holders.set(len(entries))
        silent_ms = [now_ms - entry.heard_ms for entry in entries if entry.heard_ms is not None]
        self._silent.set(max(silent_ms, default=0) / 1000)
        self._waits.set(book.waits if book else 0)
        older = versions_in_use(entry.pinned.values() for entry in entries)
        self._versions.set(1 + max((count for _, count in older), default=0) if entries else 0)
        audit = holders.audit if holders else SchemaAudit()
        self._checks.set(audit.checks)
        self._found.set(audit.violation_count)
        self._stopped.set(len({violation.table_id for violation in audit.standing()}))
