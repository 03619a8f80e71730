"""Numbers of copies that a table or placement can have, and those that none has."""

import pytest

from metasrv_base.wire.api.table_rules import copies_errors


@pytest.mark.parametrize("numbers", [(1, 1), (2, None), (2, 1), (3, 2), (15, 15), (None, 15)])
def test_given_numbers_of_copies_that_a_table_can_have_then_valid(
    numbers: tuple[int | None, int | None],
) -> None:
    assert list(copies_errors(*numbers)) == []


@pytest.mark.parametrize(
    ("numbers", "pointer"),
    [
        ((16, None), "/replicas"),
        ((1, 2), "/min_in_sync"),
        ((3, 4), "/min_in_sync"),
        ((None, 16), "/min_in_sync"),
    ],
)
def test_given_numbers_of_copies_that_no_table_has_then_refused(
    numbers: tuple[int | None, int | None], pointer: str
) -> None:
    (error,) = copies_errors(*numbers)

    assert (error.pointer, error.code) == (pointer, "invalid-request")
