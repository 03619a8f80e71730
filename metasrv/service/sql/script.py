"""SQL text as what is carried out one after the other: statements, and batches of them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from metasrv_base.errors import Refused
from metasrv_base.sql import commands as sql
from metasrv_base.sql.faults import fault_at
from metasrv_base.sql.grammar.alter_table import TypeOf
from metasrv_base.sql.grammar.statements import Statement, statements
from metasrv_base.wire.api.batches import COMMANDS_MAX
from metasrv_base.wire.language.sql import STATEMENTS_MAX


@dataclass(frozen=True, slots=True)
class StatementBlock:
    """The statements from BEGIN to COMMIT, which are one batch."""

    begin: Statement
    members: tuple[Statement, ...]

    @property
    def offset(self) -> int:
        return self.begin.text.start


@dataclass(frozen=True, slots=True)
class SingleStatement:
    statement: Statement

    @property
    def offset(self) -> int:
        return self.statement.text.start


Unit: TypeAlias = StatementBlock | SingleStatement


def units(source: str, type_of: TypeOf) -> Iterator[Unit]:
    """Yields what is carried out one after the other, each read when it is asked for. Raises
    Refused `invalid-sql`."""
    following = statements(source, type_of)
    for statement in following:
        match statement.command:
            case sql.Begin():
                yield _block(statement, following)
            case sql.Commit():
                raise _refused_at(statement, "COMMIT", "BEGIN before it")
            case _:
                yield SingleStatement(statement)


def _block(begin: Statement, following: Iterator[Statement]) -> StatementBlock:
    members: list[Statement] = []
    for statement in following:
        if isinstance(statement.command, sql.Commit):
            if not members:
                raise _refused_at(statement, "COMMIT", "a change before it")
            return StatementBlock(begin, tuple(members))
        if not isinstance(statement.command, sql.CHANGES):
            raise _refused_at(statement, statement.text.text, "a change, or COMMIT")
        if len(members) == COMMANDS_MAX:
            raise _refused_at(
                statement, statement.text.text, f"COMMIT after {COMMANDS_MAX} changes"
            )
        members.append(statement)
    raise _refused_at(begin, "BEGIN", "COMMIT behind it")


def must_be_readable(source: str) -> None:
    """Reads all of a text before anything is carried out. Raises Refused `invalid-sql`."""
    for number, unit in enumerate(units(source, _no_type)):
        if number == STATEMENTS_MAX:
            actual = f"more than {STATEMENTS_MAX} statements"
            raise fault_at(source, unit.offset, actual=actual, expected="fewer in one text")


def _no_type(table: sql.QualifiedTable, column: str) -> None:
    return None


def _refused_at(statement: Statement, actual: str, expected: str) -> Refused:
    text = statement.text
    return fault_at(text.source, text.start, actual=actual, expected=expected)
