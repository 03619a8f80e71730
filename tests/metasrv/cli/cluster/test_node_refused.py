"""Fields of changes that no service would accept: the command says so, and sends nothing."""

import pytest

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

LONG = "x" * 501
EMPTY, TOO_LONG = "must have at least 1 character", "must have at most 500 characters"
P = "019aa5d3-1c00-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("words", "value", "said"),
    [
        ("node cordon dn-1 --reason", "", EMPTY),
        ("node drain dn-1 --reason", "", EMPTY),
        ("node release dn-1 --reason", "", EMPTY),
        ("node decommission dn-1 --reason", "", EMPTY),
        ("node decommission dn-1 --lost --reason", "", EMPTY),
        ("node rebind dn-1 --principal", "ops team", "must match pattern"),
        ("node adopt dn-1 --address", "", EMPTY),
        ("region switch-leader 7 --reason", "", EMPTY),
        ("region add-copy 7 --reason", LONG, TOO_LONG),
        ("region remove-copy 7 dn-1 --reason", LONG, TOO_LONG),
        ("region move-copy 7 dn-1 --reason", LONG, TOO_LONG),
        ("failover run dn-1 --reason", "", EMPTY),
        ("cluster pause on --reason", LONG, TOO_LONG),
        ("cluster maintenance on --expires-in", "40000000", "less than or equal to 31536000"),
        (f"procedure throttle {P} --rows-per-s", str(2**64), "must be less than"),
    ],
)
def test_given_a_field_that_cannot_be_when_sent_then_it_is_named_and_nothing_is_asked(
    run: Run, rest: Rest, words: str, value: str, said: str
) -> None:
    done = run(*words.split(), value, "--metasrv", rest.url)

    assert (done.exit_code, rest.asked) == (1, []), done.output
    name = words.rpartition("--")[2].replace("-", "_")
    assert any(
        line.strip().startswith(name) and said in line for line in done.stderr.splitlines()
    ), done.stderr
