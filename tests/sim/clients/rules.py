"""Constraints as a single node would enforce them: they come, hold and go."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.sim.clients.elements import NULL, Element, Way, text_of

Row = Mapping[str, object]


@dataclass(eq=False, kw_only=True)
class Rule(Element):
    """A value of one column that no row may have: null, or one that a condition excludes."""

    column: str
    refuses: str
    holds: Way
    """Since when no row has it; `comes`, unless rows that were there were not looked at."""

    @property
    def is_named(self) -> bool:
        """Whether the constraint has a name; NOT NULL belongs to the column itself."""
        return self.refuses != NULL

    def is_against(self, row: Row) -> bool:
        return self.column in row and text_of(row[self.column]) == self.refuses


@dataclass(frozen=True, slots=True)
class Rules:
    """The constraints of one table."""

    rules: list[Rule]

    def standing(self, now: float) -> list[Rule]:
        return [rule for rule in self.rules if rule.is_there(now, now)]

    def of(self, column: str, now: float) -> list[Rule]:
        return [rule for rule in self.standing(now) if rule.column == column]

    def wrong_reads(self, rows: Iterable[Row], began: float, now: float) -> Iterator[str]:
        """Yields the faults of rows that were read: values that no row may have."""
        return self._against(rows, began, now, lambda rule: rule.holds.ended <= began)

    def wrong_writes(self, rows: Iterable[Row], began: float, now: float) -> Iterator[str]:
        """Yields the faults of rows that were acknowledged as they were sent."""
        return self._against(rows, began, now, lambda rule: True)

    def may_refuse(self, began: float, now: float) -> bool:
        return any(rule.may_be_there(began, now) for rule in self.rules)

    def _against(
        self, rows: Iterable[Row], began: float, now: float, counts: Callable[[Rule], bool]
    ) -> Iterator[str]:
        rules = [rule for rule in self.rules if rule.is_there(began, now) and counts(rule)]
        for row in rows:
            for rule in rules:
                if rule.is_against(row):
                    yield f"key {row['id']}: {rule.column} is {rule.refuses}, against {rule.name}"
