"""Submissions on their way to the store, by what one of them looks at."""

import pytest

from keys.model.records import Lock
from procedures.locking import holding
from procedures.locking.locks import exclusive, shared
from procedures.scheduling.active_procedures import ActiveProcedures

MANY = 200
CHANGE = (shared("schema:main.public"), exclusive("table:1024"), exclusive("route:1024"))
FAILOVER = (exclusive("route:1024"), exclusive("region:4398046511104"))


def moved(number: int) -> tuple[Lock, ...]:
    """Returns the locks with which a failover of some region is submitted."""
    return exclusive(f"route:{number}"), exclusive(f"region:{number << 32}")


def test_given_many_failovers_arriving_then_another_looks_at_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[tuple[Lock, ...]] = []
    true_look = holding._takes_both_sides

    def look(claim: tuple[Lock, ...], placement: tuple[Lock, ...]) -> bool:
        looks.append(claim)
        return true_look(claim, placement)

    monkeypatch.setattr(holding, "_takes_both_sides", look)
    active = ActiveProcedures()

    for number in range(MANY):
        assert active.announce(f"p{number}", moved(number)) == frozenset()

    assert looks == []


def test_given_a_change_arriving_then_a_failover_of_its_region_precedes_it_until_it_came() -> None:
    active = ActiveProcedures()
    active.announce("change", CHANGE)

    assert active.announce("first", FAILOVER) == frozenset({"change"})
    active.arrived("change", frozenset())
    assert active.announce("second", FAILOVER) == frozenset()
