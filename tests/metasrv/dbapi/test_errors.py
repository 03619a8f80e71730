"""The five errors as exceptions of PEP 249: what was not done never has the name of what perhaps
was."""

import pytest

from metasrv.dbapi import errors
from metasrv_base.errors import (
    Conflict,
    Corrupt,
    MetaError,
    NotFound,
    NotLeader,
    Refused,
    Unavailable,
    Unknown,
)
from metasrv_base.wire.problem.problems import KINDS

APPLIED = [{"region_id": "1", "outcome": "applied"}, {"region_id": "2", "outcome": "not-applied"}]
NONE = [{"region_id": "1", "outcome": "not-applied"}]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refused("invalid-sql"), errors.ProgrammingError),
        (NotFound("table-not-found"), errors.ProgrammingError),
        (Refused("invalid-request"), errors.DataError),
        (Refused("unsupported"), errors.NotSupportedError),
        (Conflict("already-exists", regions=NONE), errors.IntegrityError),
        (Conflict("already-exists", regions=APPLIED), errors.PartlyDoneError),
        (Conflict("version-mismatch"), errors.OperationalError),
        (NotLeader(), errors.OperationalError),
        (Unavailable(), errors.OperationalError),
        (Unknown(regions=APPLIED), errors.OutcomeUnknownError),
        (Corrupt(), errors.InternalError),
    ],
)
def test_given_an_error_then_it_is_one_exception_of_pep_249(
    error: MetaError, kind: type[errors.Error]
) -> None:
    made = errors.database_error(error, parameters_done=3)

    assert type(made) is kind
    assert (made.code, made.facts) == (error.code, {**error.facts, "parameters_done": 3})
    assert str(made) == str(error)


@pytest.mark.parametrize("code", sorted(KINDS))
def test_given_each_problem_when_not_done_then_no_name_of_it_is_that_of_perhaps_done(
    code: str,
) -> None:
    kind = KINDS[code].error
    made = errors.database_error(kind(code))

    assert isinstance(made, errors.OutcomeUnknownError) is issubclass(kind, Unknown)
    assert isinstance(made, errors.InternalError) is issubclass(kind, Corrupt)
    assert not isinstance(made, errors.PartlyDoneError)


def test_given_the_codes_that_are_told_apart_then_each_is_a_problem() -> None:
    told = errors.DATA_CODES | errors.INTEGRITY_CODES | errors.UNSUPPORTED_CODES

    assert told <= set(KINDS)


def test_given_the_exceptions_then_they_are_the_tree_of_pep_249() -> None:
    below = {kind.__name__ for kind in errors.DatabaseError.__subclasses__()}

    assert {
        "DataError",
        "OperationalError",
        "IntegrityError",
        "InternalError",
        "ProgrammingError",
        "NotSupportedError",
    } == below - {"PartlyDoneError", "OutcomeUnknownError"}
    assert {kind.__name__ for kind in errors.Error.__subclasses__()} == {
        "InterfaceError",
        "DatabaseError",
    }
    assert not issubclass(errors.Warning, errors.Error)
