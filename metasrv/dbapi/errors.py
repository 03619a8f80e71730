"""The exceptions of PEP 249, made of our errors: no name is shared by what was not done and what
perhaps was.

Warning
Error
├── InterfaceError             not done: the connection or the cursor is closed
└── DatabaseError
    ├── ProgrammingError       not done: the statement must be changed
    ├── DataError              not done: a value does not fit
    ├── IntegrityError         not done: a key is there already, or a constraint forbids it
    ├── NotSupportedError      not done: nobody does this
    ├── OperationalError       not done: the same statement may be run again
    ├── PartlyDoneError        some regions took their rows, others did not
    ├── OutcomeUnknownError    perhaps done
    └── InternalError          stored data is damaged, or the service failed
"""

import builtins
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from metasrv_base.errors import Corrupt, MetaError, Refused, Unknown


class Warning(builtins.Warning):
    """Named by PEP 249; never raised here."""


class Error(Exception):
    """The base of all others."""

    def __init__(self, message: str, code: str = "", facts: Mapping[str, object] | None = None):
        super().__init__(message)
        self.code = code
        """The code of docs/problems/; empty: the error was made by this module."""
        self.facts: dict[str, object] = dict(facts or {})
        """Values for programs, as of the SDK's errors: `line`, `column`, `excerpt`, `regions`, ..

        Of `executemany`, `parameters_done`: so many of the first parameters are done.
        """


class InterfaceError(Error):
    """The connection or the cursor is closed. Nothing was done."""


class DatabaseError(Error):
    """The base of what a statement can meet."""


class ProgrammingError(DatabaseError):
    """The statement, or the number of its parameters, is wrong. Nothing was done."""


class DataError(DatabaseError):
    """A value does not fit its column, or is too large. Nothing was done."""


class IntegrityError(DatabaseError):
    """The row, or an object of the name, is there already, or a constraint forbids it. Nothing was
    done."""


class NotSupportedError(DatabaseError):
    """Asked for what nobody does, as a rollback. Nothing was done."""


class OperationalError(DatabaseError):
    """No server was there, or another change was in the way. Nothing was done: the same statement
    may be run again."""


class PartlyDoneError(DatabaseError):
    """Some regions took their rows and others did not: `facts["regions"]` says which."""


class OutcomeUnknownError(DatabaseError):
    """Perhaps done, and perhaps it still will be: read to find out."""


class InternalError(DatabaseError):
    """Stored data is damaged, or the service contradicts itself: call an operator."""


DATA_CODES = frozenset({"invalid-request", "limit-exceeded", "body-too-large"})
INTEGRITY_CODES = frozenset(
    {
        "already-exists",
        "check-violation",
        "constraint-violated",
        "index-not-unique",
        "row-missing",
        "unique-violation",
    }
)
UNSUPPORTED_CODES = frozenset({"method-not-allowed", "not-in-batch", "unsupported"})


def kind_of(error: MetaError) -> type[DatabaseError]:
    """The exception of PEP 249 that one of the five errors is."""
    match error:
        case Unknown():
            return OutcomeUnknownError
        case Corrupt():
            return InternalError
    if _is_partly_done(error):
        return PartlyDoneError
    for codes, kind in (
        (INTEGRITY_CODES, IntegrityError),
        (DATA_CODES, DataError),
        (UNSUPPORTED_CODES, NotSupportedError),
    ):
        if error.code in codes:
            return kind
    return ProgrammingError if isinstance(error, Refused) else OperationalError


def database_error(error: MetaError, **more: object) -> DatabaseError:
    """The same error, with *more* facts."""
    return kind_of(error)(str(error), error.code, {**error.facts, **more})


@contextmanager
def translated() -> Iterator[None]:
    """Raises the errors of the block as those of this module."""
    try:
        yield
    except MetaError as error:
        raise database_error(error) from error


def _is_partly_done(error: MetaError) -> bool:
    regions = error.facts.get("regions")
    if not isinstance(regions, Sequence):
        return False
    return any(isinstance(each, Mapping) and each.get("outcome") == "applied" for each in regions)
