"""What the steps of a rehearsal do and wait for, noted as they do it."""

from dataclasses import dataclass, field

from procedures.dry_run.plan import Blocker, Obstacle, PlannedDrain, PlannedOrder, PlannedScan
from procedures.ports import Behind


@dataclass
class Notes:
    """Of the step in flight, but for who was met before."""

    orders: list[PlannedOrder] = field(default_factory=list)
    scans: list[PlannedScan] = field(default_factory=list)
    waits: list[Blocker] = field(default_factory=list)
    drains: list[PlannedDrain] = field(default_factory=list)
    _met: set[str] = field(default_factory=set)
    """Holders that were in the way of an earlier step: once waited for, they are no more."""

    def clear(self) -> "Notes":
        """For the next step."""
        self.orders, self.scans, self.waits, self.drains = [], [], [], []
        return self

    def drain(self, table_id: int, schema_version: int, behind: tuple[Behind, ...]) -> None:
        """All *behind* must follow; who has a transaction open, or was not heard, is in the way."""
        names = tuple(one.holder for one in behind)
        self.drains.append(PlannedDrain(table_id, schema_version, names))
        for one in behind:
            in_the_way = one.transaction is not None or one.have is None
            if in_the_way and one.holder not in self._met:
                self._met.add(one.holder)
                self.waits.append(_in_the_way(one))


def _in_the_way(one: Behind) -> Blocker:
    return Blocker(
        Obstacle.SCHEMA_LEASE,
        one.holder,
        expires_in_ms=one.expires_in_ms,
        transaction=one.transaction,
        transaction_age_ms=one.transaction_age_ms,
    )
