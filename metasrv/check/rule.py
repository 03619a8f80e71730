"""Rules, their violations, and the function that runs rules over facts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from metasrv.check.check_input import CheckInput


class Severity(StrEnum):
    VIOLATION = "violation"
    WARNING = "warning"
    """A fact that operators should know and that breaks no promise."""


class Scope(StrEnum):
    """The facts that a rule reads."""

    STORE = "store"
    """Keys of one revision: its faults are certain."""
    WORLD = "world"
    """Nodes and files too, which are read a moment later: its faults must be found twice."""


@dataclass(frozen=True, slots=True)
class CheckFault:
    """A fault: a key or a file, its actual value, and the right one."""

    subject: str
    actual: str
    right: str


RuleFunction = Callable[[CheckInput], Iterable[CheckFault]]


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A condition that always holds. The docstring of `run` gives its reason."""

    id: str
    promise: int
    """The number of the promise in docs/guarantees.md that it stands for."""
    title: str
    run: RuleFunction
    scope: Scope = Scope.STORE
    severity: Severity = Severity.VIOLATION
    deep: bool = False
    """Whether the rule needs facts that only `--deep` reads."""


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    severity: Severity
    scope: Scope
    subject: str
    found: str
    right: str

    @property
    def is_blame(self) -> bool:
        """Whether it blames a node or a file, which may only have been on its way."""
        return self.scope is Scope.WORLD and self.severity is Severity.VIOLATION

    @property
    def line(self) -> str:
        return f"{self.severity} {self.rule} {self.subject}: {self.found}; right: {self.right}"


def violations_of(rules: Sequence[CheckRule], facts: CheckInput) -> tuple[Violation, ...]:
    """Returns the faults of all rules. Each key or file is named once, by the first rule that finds
    fault with it.

    Rules stand in order from the narrow to the wide, so that the consequences of a fault are not
    reported as further faults.
    """
    named: set[str] = set()
    violations: list[Violation] = []
    for rule in rules:
        faults = [fault for fault in rule.run(facts) if fault.subject not in named]
        violations += [
            Violation(rule.id, rule.severity, rule.scope, fault.subject, fault.actual, fault.right)
            for fault in faults
        ]
        named |= {fault.subject for fault in faults}
    return tuple(violations)
