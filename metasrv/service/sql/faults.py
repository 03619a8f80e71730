"""Errors of statements with their places in the text. Pure."""

from metasrv_base.errors import MetaError
from metasrv_base.sql.faults import excerpt, position
from metasrv_base.sql.grammar.statements import Statement
from metasrv_base.wire.problem.problems import FieldError

HOLDERS = ("/placement", "/tablespace")
"""Pointers to the object of a statement that has no other name."""


def with_place(
    error: MetaError, statement: Statement, number: int, pointer: str | None = None
) -> MetaError:
    """The same error, with the number of its statement, from 1, and the place in the text of its
    first fault: that of *pointer*, if the error's own points into something else. The statements
    before it are done."""
    own = _pointer(error) if pointer is None else pointer
    offset = statement.place_of(own or _of_object(error, statement))
    line, column = position(statement.text.source, offset)
    places = {"line": line, "column": column, "excerpt": excerpt(statement.text.source, offset)}
    return type(error)(error.code, **{**error.facts, "statement": number, **places})


def _of_object(error: MetaError, statement: Statement) -> str:
    """The pointer to the name of an object that the error is about; "" if the text has none."""
    if "errors" in error.facts:
        return ""
    names = (f"/{error.facts.get('what')}", "/name", *HOLDERS)
    return next((name for name in names if name in statement.places), "")


def _pointer(error: MetaError) -> str:
    errors = error.facts.get("errors")
    if isinstance(errors, tuple) and errors and isinstance(errors[0], FieldError):
        return errors[0].pointer
    pointer = error.facts.get("pointer")
    return pointer if isinstance(pointer, str) else ""


def member_of_batch(error: MetaError) -> tuple[int, str]:
    """The number of the command, from 0, that a batch was refused for, and the pointer into its
    body: of `/commands/3/create_table/table/columns/0` it is 3 and `/columns/0`."""
    parts = _pointer(error).split("/")
    if len(parts) >= 3 and parts[1] == "commands" and parts[2].isdigit():
        inside = parts[4:]
        body = inside[1:] if inside[:1] in (["table"], ["schema"], ["tablespace"]) else inside
        return int(parts[2]), "".join(f"/{part}" for part in body)
    command = error.facts.get("command")
    return (command, "") if isinstance(command, int) else (0, "")
