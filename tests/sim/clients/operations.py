"""Operations of an alter, and what of the model each moves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sim.checks.oracle import Written
from tests.sim.clients.client import Session
from tests.sim.clients.elements import NULL, Way, standing, text_of
from tests.sim.clients.rules import Rule
from tests.sim.clients.shaped import SPARSE, Column, Shaped
from tests.sim.clients.users import VALUES

COLUMNS_MAX = 4
NOT_VALID = 0.4
TYPES = ("int16", "int32", "int64")


@dataclass
class Plan:
    """The parts of the model that one change moves."""

    operations: list[dict[str, Any]] = field(default_factory=list)
    comes: list[Way] = field(default_factory=list)
    goes: list[Way] = field(default_factory=list)
    sets: list[Written] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    """Names of columns that it says something of."""
    dropped: str | None = None
    """A column."""

    def settle(self, now: float, *, done: bool) -> None:
        for way in (*self.comes, *self.goes):
            way.refused = not done
            if done:
                way.ended = now
            else:
                way.over = now
        for one in self.sets:
            one.refused = not done
            if done:
                one.ended = now


@dataclass(frozen=True)
class Operations:
    """Each adds itself to a plan, if there is something for it to do."""

    table: Shaped
    session: Session
    name: Callable[[str], str]
    """A new one, of a prefix."""

    def of_rules(self) -> "list[Callable[[Plan], None]]":
        return [
            self.forbid_null,
            self.permit_null,
            self.add_check,
            self.add_check,
            self.validate_check,
            self.drop_check,
        ]

    def add_column(self, plan: Plan) -> None:
        if len(standing(self.table.columns.values(), self.session.now)) >= COLUMNS_MAX:
            return self.drop_column(plan)
        random = self.session.random
        required = random.random() < 0.4
        default = random.randrange(100, 200) if required or random.random() < 0.5 else None
        self.add(plan, required, default)

    def add(self, plan: Plan, required: bool, default: int | None) -> None:
        """A column."""
        name, way = self.name("c"), Way(self.session.now)
        column = {"name": name, "type": "int64", "nullable": not required, "default": default}
        self.table.add(Column(name, way, origin=default))
        if required:
            self._ruled(Rule(name=f"{name}!", comes=way, column=name, refuses=NULL, holds=way))
        plan.operations.append({"op": "add_column", "column": column})
        plan.comes.append(way)
        plan.taken.add(name)

    def drop_column(self, plan: Plan) -> None:
        """Indexes over it go with it; conditions over it forbid it."""
        now = self.session.now
        kept = {rule.column for rule in self.table.rules.standing(now) if rule.is_named}
        names = [name for name in self._free(plan) if name not in kept]
        if not names:
            return
        name = self.session.random.choice(names)
        over = [one for one in self.table.indexes.values() if name in one.columns]
        indexes = [one for one in over if one.is_there(now, now)]
        for element in (self.table.columns[name], *indexes, *self.table.rules.of(name, now)):
            way = Way(now)
            element.goes.append(way)
            plan.goes.append(way)
        plan.operations.append({"op": "drop_column", "name": name})
        plan.taken.add(name)
        plan.dropped = name

    def alter_type(self, plan: Plan) -> None:
        """Alters the type of a column that nothing depends on; every value fits each of these
        types."""
        now = self.session.now
        over = {rule.column for rule in self.table.rules.standing(now) if rule.is_named}
        for index in self.table.indexes.values():
            over |= set(index.columns) if index.is_there(now, now) else set()
        names = [name for name in self._free(plan) if name not in over]
        if names:
            name, type = self.session.random.choice(names), self.session.random.choice(TYPES)
            plan.operations.append({"op": "alter_type", "name": name, "type": type})
            plan.taken.add(name)

    def set_default(self, plan: Plan) -> None:
        names = self._free(plan)
        if not names:
            return
        column = self.table.columns[self.session.random.choice(names)]
        default = self.session.random.randrange(200, 300)
        plan.sets.append(column.defaults.begin(0, text_of(default), self.session.now))
        plan.operations.append({"op": "set_default", "name": column.name, "default": default})
        plan.taken.add(column.name)

    # ---- what rows must satisfy

    def forbid_null(self, plan: Plan) -> None:
        now = self.session.now
        names = [name for name in self._free(plan) if not self._never_null(name, now)]
        if names:
            name, way = self.session.random.choice(names), Way(now)
            rule = Rule(name=self.name("n"), comes=way, column=name, refuses=NULL, holds=way)
            self._coming(plan, rule, {"op": "set_nullable", "name": name, "nullable": False})

    def permit_null(self, plan: Plan) -> None:
        now = self.session.now
        names = [name for name in self._free(plan) if self._never_null(name, now)]
        if names:
            name = self.session.random.choice(names)
            plan.operations.append({"op": "set_nullable", "name": name, "nullable": True})
            for rule in self._never_null(name, now):
                self._going(plan, rule)

    def add_check(self, plan: Plan) -> None:
        names = self._free(plan)
        if not names:
            return
        random, way = self.session.random, Way(self.session.now)
        column = random.choice(names)
        value = random.randrange(self.table.spread if column == SPARSE else VALUES + 2)
        not_valid = random.random() < NOT_VALID
        holds = Way(self.session.now) if not_valid else way
        rule = Rule(name=self.name("k"), comes=way, column=column, refuses=str(value), holds=holds)
        condition = {"check": f"{column} <> {value}", "not_valid": not_valid}
        self._coming(plan, rule, {"op": "add_constraint", "name": rule.name, **condition})

    def validate_check(self, plan: Plan) -> None:
        now = self.session.now
        rules = [rule for rule in self._checks(plan) if not rule.holds.ended <= now]
        if rules:
            rule = self.session.random.choice(rules)
            rule.holds = Way(now)
            plan.comes.append(rule.holds)
            plan.operations.append({"op": "validate_constraint", "name": rule.name})
            plan.taken.add(rule.column)

    def drop_check(self, plan: Plan) -> None:
        rules = self._checks(plan)
        if rules:
            rule = self.session.random.choice(rules)
            plan.operations.append({"op": "drop_constraint", "name": rule.name})
            self._going(plan, rule)

    def _coming(self, plan: Plan, rule: Rule, operation: dict[str, Any]) -> None:
        self._ruled(rule)
        plan.operations.append(operation)
        plan.comes.append(rule.comes)
        plan.taken.add(rule.column)

    def _ruled(self, rule: Rule) -> None:
        self.table.rules.rules.append(rule)

    def _going(self, plan: Plan, rule: Rule) -> None:
        way = Way(self.session.now)
        rule.goes.append(way)
        plan.goes.append(way)
        plan.taken.add(rule.column)

    def _never_null(self, column: str, now: float) -> list[Rule]:
        return [rule for rule in self.table.rules.of(column, now) if not rule.is_named]

    def _checks(self, plan: Plan) -> list[Rule]:
        standing = self.table.rules.standing(self.session.now)
        return [rule for rule in standing if rule.is_named and rule.column not in plan.taken]

    def _free(self, plan: Plan) -> list[str]:
        """Columns that stand, of which the plan says nothing yet."""
        names = standing(self.table.columns.values(), self.session.now)
        return [name for name in names if name not in plan.taken]
