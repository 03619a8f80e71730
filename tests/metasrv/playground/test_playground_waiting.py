"""A wait that runs out says what the program printed until then."""

import pytest

from tests.metasrv.playground.waiting import until


def test_given_a_program_that_is_never_ready_when_the_wait_runs_out_then_its_output_is_shown() -> (
    None
):
    with pytest.raises(AssertionError, match="etcd is ready: 1 of 6"):
        until(lambda: False, 0, lambda: "etcd is ready: 1 of 6")


def test_given_what_is_waited_for_when_it_is_there_then_it_is_the_answer() -> None:
    assert until(lambda: "ready", 0) == "ready"
