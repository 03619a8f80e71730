"""Actions and waits of the steps of a dry run, noted as they happen."""

from dataclasses import dataclass, field

from procedures.dry_run.plan import Blocker, Obstacle, PlannedDrain, PlannedOrder, PlannedScan
from procedures.ports import Behind


@dataclass
class Notes:
    """Notes of the step in flight; `_met` spans all steps."""

    orders: list[PlannedOrder] = field(default_factory=list)
    scans: list[PlannedScan] = field(default_factory=list)
    waits: list[Blocker] = field(default_factory=list)
    drains: list[PlannedDrain] = field(default_factory=list)
    _met: set[str] = field(default_factory=set)
    """Holders that were in the way of an earlier step: once waited for, they are no more."""

    def clear(self) -> "Notes":
        """Clears the notes for the next step."""
        self.orders, self.scans, self.waits, self.drains = [], [], [], []
        return self

    def drain(self, table_id: int, schema_version: int, behind: tuple[Behind, ...]) -> None:
        """All *behind* must follow; who has a transaction open, or was not heard, is in the way."""
        names = tuple(holder.holder for holder in behind)
        self.drains.append(PlannedDrain(table_id, schema_version, names))
        for holder in behind:
            in_the_way = holder.transaction is not None or holder.have is None
            if in_the_way and holder.holder not in self._met:
                self._met.add(holder.holder)
                self.waits.append(_in_the_way(holder))


def _in_the_way(behind: Behind) -> Blocker:
    return Blocker(
        Obstacle.SCHEMA_LEASE,
        behind.holder,
        expires_in_ms=behind.expires_in_ms,
        transaction=behind.transaction,
        transaction_age_ms=behind.transaction_age_ms,
    )
