"""Rules and graphs with one fault in them: each is seen, by which invariant, after how much."""

import pytest

from metasrv_base.elements.proof.database import ProofFault
from metasrv_base.elements.proof.journey import journey
from tests.metasrv_base.elements.proof.known_mutants import KNOWN
from tests.metasrv_base.elements.proof.own_mutants import OURS

pytestmark = pytest.mark.crash
ALL = {**KNOWN, **OURS}


@pytest.mark.parametrize("name", ALL)
def test_given_a_variant_when_explored_then_it_is_found_out_or_it_holds(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = ALL[name]

    found = case.explored()

    assert found.fault is (case.first or case.found), str(found)
    if case.found is None:
        assert found.published == {str(node) for node in journey(found.change)}
    with capsys.disabled():
        print(f"\n{name}: {found.fault or 'holds'}, {found.states} states", end="")


@pytest.mark.parametrize("name", [name for name, case in ALL.items() if case.first])
def test_given_a_variant_with_a_nearer_fault_when_one_is_sought_then_that_one_is_found_too(
    name: str,
) -> None:
    case = ALL[name]

    found = case.explored(seek=case.found)

    assert found.fault is case.found, str(found)


def test_given_the_variants_then_every_fault_is_found_by_one_of_them() -> None:
    assert {case.found for case in ALL.values()} == {None, *ProofFault}


def test_given_a_fault_then_its_trace_is_the_shortest_and_can_be_read() -> None:
    found = KNOWN["no delete-only"].explored()

    assert found.trace == (
        "rows none; stored nothing",
        "owner: publishes write-only",
        "server 0: loads write-only",
        "server 0 at write-only: insert row 0 = a  [rows 0=a; stored a->0]",
        "server 0 at absent: update row 0 = b  [rows 0=b; stored a->0]",
    )
