"""The leader's registry of holders, without a store or a clock: waits for them, and their
bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.transitions import Went
from metasrv.holders.holder_registry import HolderRegistry, Wait
from metasrv.nodes.lease_table import DRIFT, wait_ms
from metasrv_base.errors import Conflict, NotFound, Refused
from tests.metasrv.holders.samples import acknowledgement, holder, pin

LEASE_MS, TTL_MS = 15_000, 5_000
W_MS = wait_ms(LEASE_MS)
TABLE, OTHER = 1024, 1025
NEED = 17
"""The catalog version that publishes schema version 5 of the table."""


def book_of(*holders: str, at_ms: int = 0, version: int = NEED - 1) -> HolderRegistry:
    """Holders that are registered, and known to be at *version*."""
    book = HolderRegistry(LEASE_MS, TTL_MS, elected_at_ms=-1_000_000)
    for one in holders:
        book.registered(holder(one), version, (), at_ms)
    return book


def waits_for(
    book: HolderRegistry, table_id: int = TABLE, need: int = NEED
) -> tuple[Wait, list[bool]]:
    """A wait for schema version 5 that has begun, and whether it is over."""
    over: list[bool] = []
    wait = Wait(table_id, 5, need, lambda: over.append(True))
    book.begin(wait)
    return wait, over


def test_given_three_holders_when_the_last_acknowledges_then_the_wait_is_over_once() -> None:
    book = book_of("fe-1", "fe-2", "fe-3")
    _, over = waits_for(book)

    for number, name in enumerate(("fe-1", "fe-2", "fe-3")):
        assert over == []
        book.acknowledged(acknowledgement(name, 1, NEED), number)

    assert over == [True]


def test_given_no_holders_when_a_wait_begins_then_it_is_over() -> None:
    _, over = waits_for(book_of())

    assert over == [True]


@pytest.mark.case("online 2")
@pytest.mark.case("catalog 93")
def test_given_a_holder_that_renews_and_does_not_follow_then_its_transaction_is_named() -> None:
    book = book_of("fe-1", "fe-2")
    wait, over = waits_for(book)

    book.acknowledged(acknowledgement("fe-1", 1, NEED), 0)
    for sequence in range(1, 20):
        now_ms = sequence * 3_000
        held = pin(TABLE, 4, "t-9", age_ms=now_ms)
        book.acknowledged(acknowledgement("fe-2", sequence, NEED, held), now_ms)

    (one,) = book.behind(wait, 60_000)
    assert (one.holder, one.have, one.need) == ("fe-2", NEED, NEED)
    assert (one.transaction, one.transaction_age_ms) == ("t-9", 57_000)
    assert one.expires_in_ms == 57_000 + W_MS - 60_000
    assert over == []


def test_given_holders_that_were_waited_for_when_over_then_each_says_how_it_went_and_for_what() -> (
    None
):
    book = book_of("fe-1", "fe-2", "fe-3", "fe-4")
    book.acknowledged(acknowledgement("fe-4", 1, NEED), 0)
    went: list[tuple[str, Went, str | None]] = []
    wait, over = waits_for(book)
    wait.went = lambda *one: went.append(one)

    book.acknowledged(acknowledgement("fe-1", 1, NEED), 0)
    book.acknowledged(acknowledgement("fe-2", 1, NEED, pin(TABLE, 4, "t-9")), 0)
    book.removed("fe-3", "i-1")
    book.acknowledged(acknowledgement("fe-2", 2, NEED), 1)

    assert went == [
        ("fe-1", Went.FOLLOWED, None),
        ("fe-3", Went.REMOVED, None),
        ("fe-2", Went.FOLLOWED, "t-9"),
    ]
    assert over == [True]


def test_given_a_silent_holder_when_asked_then_what_is_known_of_it_is_said() -> None:
    book = book_of("fe-1")
    wait, _ = waits_for(book)

    (one,) = book.behind(wait, 4_000)

    assert (one.have, one.need, one.expires_in_ms) == (NEED - 1, NEED, W_MS - 4_000)
    assert (one.transaction, one.transaction_age_ms) == (None, None)


@pytest.mark.case("online 21")
@pytest.mark.case("catalog 141")
def test_given_a_transaction_on_one_table_then_no_other_table_waits_for_it() -> None:
    book = book_of("fe-1")
    _, other = waits_for(book, OTHER)
    _, mine = waits_for(book, TABLE)

    book.acknowledged(acknowledgement("fe-1", 1, NEED, pin(TABLE, 4)), 0)

    assert (other, mine) == ([True], [])


def test_given_a_pin_at_the_new_version_then_it_is_not_waited_for() -> None:
    book = book_of("fe-1")
    _, over = waits_for(book)

    book.acknowledged(acknowledgement("fe-1", 1, NEED, pin(TABLE, 5)), 0)

    assert over == [True]


@pytest.mark.case("online 18")
def test_given_a_pin_that_is_let_go_when_acknowledged_then_the_wait_is_over() -> None:
    book = book_of("fe-1")
    _, over = waits_for(book)
    book.acknowledged(acknowledgement("fe-1", 1, NEED, pin(TABLE, 4)), 0)
    assert over == []

    book.acknowledged(acknowledgement("fe-1", 2, NEED), 1)

    assert over == [True]


@pytest.mark.case("online 16")
def test_given_old_and_repeated_acknowledgements_then_they_change_nothing() -> None:
    book = book_of("fe-1")
    book.acknowledged(acknowledgement("fe-1", 7, NEED, pin(TABLE, 4)), 1_000)
    _, over = waits_for(book)

    for sequence in (7, 6, 0):
        book.acknowledged(acknowledgement("fe-1", sequence, NEED + 5), 9_000)

    (entry,) = book.entries()
    assert (entry.have, entry.heard_ms, entry.free_at_ms) == (NEED, 1_000, 1_000 + W_MS)
    assert over == []


def test_given_a_version_that_goes_back_when_acknowledged_then_it_is_refused() -> None:
    book = book_of("fe-1")
    book.acknowledged(acknowledgement("fe-1", 1, NEED), 0)

    with pytest.raises(Refused):
        book.acknowledged(acknowledgement("fe-1", 2, NEED - 1), 0)

    (entry,) = book.entries()
    assert (entry.have, entry.sequence) == (NEED, 1)


def test_given_a_holder_that_starts_while_a_step_waits_then_it_delays_it_not() -> None:
    """Its registration is answered with the published version, which it applies before it serves
    anything."""
    book = book_of("fe-1")
    _, over = waits_for(book)

    book.registered(holder("fe-2"), NEED, (), 10)
    assert over == []
    book.acknowledged(acknowledgement("fe-1", 1, NEED), 20)

    assert over == [True]


@pytest.mark.case("online 9")
def test_given_a_holder_that_starts_again_then_only_its_newest_incarnation_is_waited_for() -> None:
    book = book_of("fe-1")
    book.acknowledged(acknowledgement("fe-1", 1, NEED, pin(TABLE, 4)), 0)
    _, over = waits_for(book)

    book.registered(holder("fe-1", "i-2"), NEED, (), 10)

    assert over == [True]
    with pytest.raises(Conflict) as stale:
        book.acknowledged(acknowledgement("fe-1", 2, NEED), 20)
    assert stale.value.code == "stale-incarnation"


def test_given_a_transaction_that_outlives_its_incarnation_then_it_is_waited_for() -> None:
    book = book_of("fe-1")
    _, over = waits_for(book)

    book.registered(holder("fe-1", "i-2"), NEED, (pin(TABLE, 4),), 10)

    assert over == []
    book.acknowledged(acknowledgement("fe-1", 0, NEED, incarnation="i-2"), 20)
    assert over == [True]


def test_given_a_registration_that_is_repeated_then_what_is_known_stays() -> None:
    """The holder may serve already, at the version that the first answer declared."""
    book = book_of("fe-1")
    book.acknowledged(acknowledgement("fe-1", 3, NEED - 1, pin(TABLE, 4)), 0)
    _, over = waits_for(book)

    book.registered(holder("fe-1"), NEED, (), 10)

    (entry,) = book.entries()
    assert (entry.have, entry.sequence, entry.free_at_ms) == (NEED - 1, 3, 10 + W_MS)
    assert over == []


def test_given_a_removal_on_its_way_when_registered_again_then_as_another_incarnation() -> None:
    book = book_of("fe-1")
    book.leaves("fe-1", "i-1")

    with pytest.raises(Conflict):
        book.registered(holder("fe-1"), NEED, (), 10)

    book.registered(holder("fe-1", "i-2"), NEED, (), 10)


def test_given_a_removed_holder_then_it_is_waited_for_no_more_and_not_heard() -> None:
    book = book_of("fe-1")
    _, over = waits_for(book)

    book.leaves("fe-1", "i-1")
    assert over == [], "until it is committed"
    book.removed("fe-1", "i-1")

    assert over == [True]
    with pytest.raises(NotFound):
        book.acknowledged(acknowledgement("fe-1", 1, NEED), 0)


def test_given_a_removal_on_its_way_then_no_lease_is_granted() -> None:
    book = book_of("fe-1")
    book.leaves("fe-1", "i-1")

    with pytest.raises(NotFound):
        book.acknowledged(acknowledgement("fe-1", 1, NEED), 0)

    book.stays("fe-1", "i-1")
    book.acknowledged(acknowledgement("fe-1", 1, NEED), 0)


def test_given_a_removal_of_an_old_incarnation_then_the_new_one_stays() -> None:
    book = book_of("fe-1")
    book.leaves("fe-1", "i-1")
    book.registered(holder("fe-1", "i-2"), NEED, (), 0)

    book.removed("fe-1", "i-1")

    assert [entry.holder.incarnation for entry in book.entries()] == ["i-2"]


def test_given_a_silent_holder_when_its_lease_ends_then_it_is_found_and_not_before() -> None:
    book = book_of("fe-1", "fe-2", at_ms=1_000)
    book.acknowledged(acknowledgement("fe-2", 1, NEED), 5_000)

    assert book.ended(1_000 + W_MS - 1) == ()
    assert [one.holder_id for one in book.ended(1_000 + W_MS)] == ["fe-1"]
    assert [one.holder_id for one in book.ended(5_000 + W_MS)] == ["fe-1", "fe-2"]


def test_given_a_new_leader_then_every_holder_has_a_full_lease_at_an_unknown_version() -> None:
    book = HolderRegistry(LEASE_MS, TTL_MS, elected_at_ms=50_000)
    book.found(holder("fe-1"))
    wait, over = waits_for(book, need=1)

    (one,) = book.behind(wait, 50_000)
    assert (one.have, one.expires_in_ms) == (None, TTL_MS + W_MS)
    assert book.ended(50_000 + TTL_MS + W_MS - 1) == ()
    assert over == []

    book.acknowledged(acknowledgement("fe-1", 3, NEED), 51_000)

    assert over == [True]
    assert book.ended(51_000 + W_MS - 1) == (), "every lease before was asked for earlier"


@pytest.mark.case("online 12")
def test_given_a_holder_whose_schema_stays_as_it_is_then_its_lease_is_counted_anew() -> None:
    book = book_of("fe-1")

    for sequence in range(1, 10):
        book.acknowledged(acknowledgement("fe-1", sequence, NEED - 1), sequence * 10_000)

    assert book.ended(90_000 + W_MS - 1) == ()


@given(
    sent=st.integers(0, 10**6),
    travel=st.integers(0, 60_000),
    rate=st.floats(1 - DRIFT / 3, 1 + DRIFT / 3),
)
def test_given_any_drift_in_bounds_when_a_lease_has_ended_here_then_at_the_holder_too(
    sent: int, travel: int, rate: float
) -> None:
    answered = sent + travel
    book = book_of("fe-1")
    book.acknowledged(acknowledgement("fe-1", 1, NEED), answered)

    holder_stops = sent + LEASE_MS / rate  # counted from before the acknowledgement was sent

    (entry,) = book.entries()
    assert entry.free_at_ms >= holder_stops
