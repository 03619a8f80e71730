"""The outcome of a statement: all applied, or the one error that is true of the whole."""

import pytest

from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable, Unknown
from metasrv_base.rows.outcome import RegionOutcome, outcome_of, settle
from metasrv_base.rows.retry import may_send_again

APPLIED = RegionOutcome("1", "applied", 2, version=9)


def failed(error: MetaError, region_id: str = "2") -> RegionOutcome:
    return outcome_of(region_id, 1, error, False)


def test_given_all_applied_then_the_rows_are_counted() -> None:
    assert settle([APPLIED, APPLIED]).rows == 4


@pytest.mark.parametrize(
    ("others", "kind", "code"),
    [
        ([failed(Conflict("already-exists"))], Conflict, "already-exists"),
        ([failed(Conflict("already-exists")), failed(Unknown())], Unknown, "outcome-unknown"),
        ([failed(Unavailable("region-lost"))], Unknown, "outcome-unknown"),
        ([failed(NotFound("table-not-found"))], Unknown, "outcome-unknown"),
        ([failed(Unavailable()), failed(Conflict("stale-epoch"))], Conflict, "stale-epoch"),
        ([failed(Refused())], Refused, "invalid-request"),
    ],
)
def test_given_less_than_all_then_the_error_is_true_of_the_whole(
    others: list[RegionOutcome], kind: type[MetaError], code: str
) -> None:
    with pytest.raises(kind) as raised:
        settle([APPLIED, *others])

    assert raised.value.code == code
    regions = raised.value.facts["regions"]
    assert isinstance(regions, list)
    assert regions[0] == {"region_id": "1", "outcome": "applied"}


def test_given_nothing_applied_and_nobody_there_then_it_is_unavailable() -> None:
    with pytest.raises(Unavailable) as raised:
        settle([failed(Unavailable("region-lost", region_id="2"))])

    assert raised.value.code == "region-lost"


def test_given_keys_refused_by_two_regions_then_all_are_named() -> None:
    one = failed(Conflict("already-exists", keys=["01"]), "1")
    two = failed(Conflict("already-exists", keys=["02"]), "2")

    with pytest.raises(Conflict) as raised:
        settle([one, two])

    assert raised.value.facts["keys"] == ["01", "02"]


@pytest.mark.parametrize(
    ("error", "perhaps", "outcome"),
    [
        (Unknown(), False, "unknown"),
        (Conflict("already-exists"), False, "not-applied"),
        (Conflict("already-exists"), True, "unknown"),
        (Unavailable(), True, "unknown"),
        (NotFound("table-not-found"), True, "unknown"),
        (Refused(), False, "not-applied"),
        (Refused(), True, "unknown"),
    ],
)
def test_given_an_error_then_the_outcome_is_not_a_guess(
    error: MetaError, perhaps: bool, outcome: str
) -> None:
    assert outcome_of("1", 1, error, perhaps).outcome == outcome


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Unknown(), True),
        (Unavailable(sent=False), True),
        (Unavailable("region-lost"), False),
        (NotFound(what="region"), True),
        (NotFound("table-not-found"), False),
        (Conflict("stale-epoch"), True),
        (Conflict("epoch-mismatch"), True),
        (Conflict("schema-version-stale"), True),
        (Conflict("already-exists"), False),
        (Conflict("version-mismatch"), False),
        (Refused(), False),
        (ValueError(), False),
    ],
)
def test_given_an_error_of_a_region_then_it_is_known_whether_to_send_again(
    error: Exception, again: bool
) -> None:
    assert may_send_again(error) is again
