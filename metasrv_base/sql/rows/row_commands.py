"""The commands that statements about rows are: INSERT, UPDATE, DELETE, SELECT of one table.

Values are in the JSON form that the routes of a frontend take; whether one fits its column is
judged where it is used, at the place that is kept for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.split import StatementText
from metasrv_base.sql.tokens import TextSpan

Comparison = Literal["=", "<", "<=", ">", ">="]
JsonRow: TypeAlias = Mapping[str, JsonScalar | None]


@dataclass(frozen=True, slots=True)
class InsertRows:
    table: QualifiedTable
    rows: tuple[JsonRow, ...]
    """A column that is not in a row gets its default."""


@dataclass(frozen=True, slots=True)
class UpdateRow:
    table: QualifiedTable
    row: JsonRow
    """The primary key of a row, and its new values."""


@dataclass(frozen=True, slots=True)
class DeleteRow:
    table: QualifiedTable
    key: JsonRow


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a column with a constant that is not NULL."""

    column: str
    comparison: Comparison
    value: JsonScalar
    pointer: str
    """Stands for the condition among the places of its statement; that of the constant is below it,
    `{pointer}/value`."""


@dataclass(frozen=True, slots=True)
class SelectRows:
    table: QualifiedTable
    columns: tuple[str, ...] | None
    """The columns to read; None for all of them, in the order of the table."""
    conditions: tuple[Condition, ...] = ()
    """Rows satisfy all of them. BETWEEN is two."""
    order_by: tuple[str, ...] = ()
    """Ascending."""
    limit: int | None = None


PlainCommand: TypeAlias = InsertRows | UpdateRow | DeleteRow | SelectRows


@dataclass(frozen=True, slots=True)
class ExplainRows:
    """The access path of a command, which is not carried out."""

    command: PlainCommand


RowCommand: TypeAlias = PlainCommand | ExplainRows


@dataclass(frozen=True, slots=True)
class RowStatement:
    text: StatementText
    command: RowCommand
    places: Mapping[str, TextSpan]
    """JSON pointer -> where the text says it: `/table`, `/rows/3/name`, `/where/0`, `/limit`."""

    @property
    def table(self) -> QualifiedTable:
        command = self.command
        return command.command.table if isinstance(command, ExplainRows) else command.table

    def place_of(self, pointer: str) -> int:
        """The place of what *pointer* points to, or of what holds it: a character of all of
        the text."""
        while pointer and pointer not in self.places:
            pointer = pointer.rpartition("/")[0]
        return self.places[pointer].start if pointer in self.places else self.text.start
