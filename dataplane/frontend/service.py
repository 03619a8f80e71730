"""The statements behind the API of a frontend, which write, read and scan. No HTTP."""

from dataclasses import dataclass

from dataplane.frontend.metrics import FrontendMetrics
from dataplane.frontend.statements.reads import Reads
from dataplane.frontend.statements.regions import RegionClient
from dataplane.frontend.statements.scanning import Scanning
from dataplane.frontend.statements.statements import Statements
from dataplane.frontend.statements.writes import Writes
from metasrv_base.concurrency.reservations import Reservations

ANSWER_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class FrontendService:
    statements: Statements
    writes: Writes
    reads: Reads
    scans: Scanning
    metrics: FrontendMetrics
    pages: Reservations
    """Memory for pages of rows, from when they are made until their readers have them."""
    streams: Reservations
    """Likewise for scans that are one body."""

    @classmethod
    def of(
        cls,
        statements: Statements,
        regions: RegionClient,
        metrics: FrontendMetrics,
        answer_bytes: int = ANSWER_BYTES,
    ) -> "FrontendService":
        return cls(
            statements=statements,
            writes=Writes(statements, regions, metrics),
            reads=Reads(statements, regions),
            scans=Scanning(statements, regions),
            metrics=metrics,
            pages=Reservations("pages", answer_bytes // 2),
            streams=Reservations("streams", answer_bytes // 2),
        )

    def check_alive(self) -> None:
        """Raises Unavailable once the lease has ended: a supervisor starts it again."""
        holder = self.statements.holder
        if holder.is_over:
            holder.check_lease()

    def exposition(self) -> bytes:
        statements = self.statements
        until_ms = statements.holder.lease.deadline_ms or 0
        left_ms = max(0, until_ms - statements.clock.mono_ms())
        return self.metrics.text(
            statements.catalog.version or 0, left_ms, len(statements.transactions)
        )
