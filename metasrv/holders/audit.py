"""Checks that holders never report a version that must not be in use (P6).

Once nobody used a table below a version, nobody begins to: a pin below the table's floor that was
not there before says that a third version is in use. The floor keeps rows safe even then; but what
the next transition counts on does not hold, so the table's schema stands still until that holder is
gone. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from metasrv_base.errors import Unavailable
from metasrv_base.wire.frontend.holders import Pin

FloorOf: TypeAlias = Callable[[int], int | None]
"""Table id -> its floor; None: there is no such table."""


@dataclass(frozen=True, slots=True)
class AuditViolation:
    """A holder that uses a version which had been given up."""

    holder: str
    table_id: int
    schema_version: int
    floor: int
    transaction: str


@dataclass(slots=True)
class SchemaAudit:
    """The audit of one term."""

    checks: int = 0
    """Pins that were looked at."""
    violation_count: int = 0
    """Violations, also those that are over."""
    _standing: dict[tuple[str, int], AuditViolation] = field(default_factory=dict)
    """Violations that stand, by holder and table."""

    def heard(
        self, holder: str, before: Mapping[int, Pin], now: Iterable[Pin], floor_of: FloorOf
    ) -> tuple[AuditViolation, ...]:
        """The new ones in what *holder* says *now*, which has said *before* until then."""
        violations = []
        for pin in now:
            self.checks += 1
            floor = floor_of(pin.table_id)
            earlier = before.get(pin.table_id)
            was_there = earlier is not None and earlier.schema_version <= pin.schema_version
            if floor is not None and pin.schema_version < floor and not was_there:
                violations.append(
                    AuditViolation(holder, pin.table_id, pin.schema_version, floor, pin.transaction)
                )
        self._standing.update(
            {(violation.holder, violation.table_id): violation for violation in violations}
        )
        self.violation_count += len(violations)
        return tuple(violations)

    def gone(self, holder: str) -> None:
        """Forgets a holder: its registration has ended, or is another process's now."""
        self._standing = {
            key: violation for key, violation in self._standing.items() if key[0] != holder
        }

    def standing(self) -> tuple[AuditViolation, ...]:
        return tuple(self._standing.values())

    def must_hold(self, table_id: int) -> None:
        """Raises Unavailable while a violation on that table stands."""
        for violation in self._standing.values():
            if violation.table_id == table_id:
                raise Unavailable(
                    "schema-audit-failed",
                    holder=violation.holder,
                    transaction=violation.transaction,
                    schema_version=violation.schema_version,
                    floor=violation.floor,
                )


def versions_in_use(pins: Iterable[Iterable[Pin]]) -> Iterator[tuple[int, int]]:
    """Yields each table of which a holder keeps an older version, with the number of different
    versions kept. The newest version, which all use, is not counted."""
    used: dict[int, set[int]] = {}
    for of_holder in pins:
        for pin in of_holder:
            used.setdefault(pin.table_id, set()).add(pin.schema_version)
    yield from ((table_id, len(versions)) for table_id, versions in sorted(used.items()))
