"""`metasrv check --data`: rows and entries of all tables, held against their schemas by Spark."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from metasrv.check.rule import Scope, Severity, Violation
from metasrv.sdk.sync import Client
from metasrv_base.wire.node.checks import DataRule, TableCheckBody, TableFault

WAIT_S = 86_400.0  # of one table, of any size
RIGHT = {
    DataRule.VALUE_UNOWNED: "no value of a column that the table never had",
    DataRule.REQUIRED_MISSING: "a value in every row",
    DataRule.ENTRY_UNOWNED: "no entry of an index that the table does not have",
    DataRule.ENTRY_MISSING: "one entry for every row",
    DataRule.ENTRY_WRONG: "a row with these values for every entry",
    DataRule.CONSTRAINT_BROKEN: "rows as the constraint says",
    DataRule.BYTES_UNEXPLAINED: "nothing that the region did not write",
}


@dataclass(frozen=True, slots=True)
class CheckedData:
    """The results of a check of all tables of a cluster."""

    tables: tuple[TableCheckBody, ...]

    @property
    def violations(self) -> tuple[Violation, ...]:
        return tuple(violation for table in self.tables for violation in violations(table))

    @property
    def counts(self) -> dict[str, int]:
        return {
            "tables": len(self.tables),
            "rows": sum(table.rows for table in self.tables),
            "entries": sum(table.entries for table in self.tables),
            "faults": sum(total for table in self.tables for total in table.totals.values()),
        }


def check_tables(client: Client) -> CheckedData:
    """One table after the other. Raises Unavailable where the service could not look."""
    names = [
        f"{catalog.name}.{schema.name}.{table.name}"
        for catalog in client.catalogs.list()
        for schema in client.schemas.list(catalog.name)
        for table in client.tables.list(f"{catalog.name}.{schema.name}")
    ]
    return CheckedData(tuple(client.tables.check(name, wait_s=WAIT_S) for name in names))


def violations(table: TableCheckBody) -> Iterator[Violation]:
    """A fault each; and for each rule what is only counted."""
    for fault in table.faults:
        yield _violation(fault.rule, _subject(table, fault), _found(fault))
    listed = Counter(fault.rule for fault in table.faults)
    for rule, total in table.totals.items():
        if not listed[rule]:
            yield _violation(rule, table.name, f"{total} faults, none of them listed")


def _violation(rule: DataRule, subject: str, finding: str) -> Violation:
    return Violation(
        rule=rule.value,
        severity=Severity.VIOLATION,
        scope=Scope.WORLD,
        subject=subject,
        found=finding,
        right=RIGHT[rule],
    )


def _subject(table: TableCheckBody, fault: TableFault) -> str:
    parts = [f"{table.name}.{fault.element}" if fault.element else table.name]
    return " ".join([*parts, f"region {fault.region_id}"])


def _found(fault: TableFault) -> str:
    parts = [f"row {_words(key)}" for key in fault.keys]
    parts += [f"values {_words(fault.values)}"] if fault.values else []
    parts += [f"entry {fault.entry_key}"] if fault.entry_key else []
    parts += [f"{fault.count} in {fault.file}"] if fault.file else []
    return ", ".join(parts)


def _words(named: object) -> str:
    if not isinstance(named, dict):
        return str(named)
    return " ".join(f"{name}={value}" for name, value in named.items())
