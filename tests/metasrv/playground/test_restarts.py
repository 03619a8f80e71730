"""Programs of a playground that are started again although they are not supervised."""

import signal

import pytest

from dataplane.frontend.main import EXIT_CONFIG, EXIT_LEASE
from metasrv.playground.restarts import asks_to_start_again


def test_given_a_frontend_without_a_lease_when_it_ends_then_it_is_started_again() -> None:
    assert asks_to_start_again(EXIT_LEASE)


@pytest.mark.parametrize("code", [0, 1, EXIT_CONFIG, -signal.SIGKILL, -signal.SIGTERM])
def test_given_a_program_that_was_told_to_end_when_it_has_then_it_stays_so(code: int) -> None:
    assert not asks_to_start_again(code)
