"""Errors of statements about rows, with their places in the text. Pure."""

from metasrv_base.errors import MetaError, NotFound, Refused
from metasrv_base.sql.faults import excerpt, fault_at, position
from metasrv_base.sql.rows.row_commands import RowStatement
from metasrv_base.wire.problem.problems import FieldError


def fault_of(statement: RowStatement, pointer: str, expected: str, **facts: object) -> Refused:
    """The refusal `invalid-sql` of what the text says for *pointer*."""
    source, span = statement.text.source, statement.places.get(pointer)
    if span is None:
        end = statement.text.end
        return fault_at(source, end, actual="", expected=expected, **facts)
    actual = source[span.start : span.end]
    return fault_at(source, span.start, actual=actual, expected=expected, **facts)


def with_place(error: MetaError, statement: RowStatement, number: int | None = None) -> MetaError:
    """The same error, with its place in the text. *number*: that of its statement, from 1, if the
    statements before it are done; clients read the fact so."""
    if error.code == "invalid-sql":
        return error
    done = {} if number is None else {"statement": number}
    return placed(error, statement.text.source, statement.place_of(_pointer(error)), **done)


def placed(error: MetaError, source: str, offset: int, **facts: object) -> MetaError:
    """The same error, with a place in the text and more facts."""
    line, column = position(source, offset)
    places = {"line": line, "column": column, "excerpt": excerpt(source, offset)}
    return type(error)(error.code, **{**error.facts, **facts, **places})


def _pointer(error: MetaError) -> str:
    errors = error.facts.get("errors")
    if isinstance(errors, tuple) and errors and isinstance(errors[0], FieldError):
        return errors[0].pointer
    pointer = error.facts.get("pointer")
    if isinstance(pointer, str):
        return pointer
    return "/table" if isinstance(error, NotFound) else ""
