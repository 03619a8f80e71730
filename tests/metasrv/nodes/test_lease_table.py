"""Lease arithmetic: what the leader takes for ended has ended at the node, whatever the clocks."""

from hypothesis import given
from hypothesis import strategies as st

from metasrv.nodes.lease_table import DRIFT, LeaseTable, wait_ms
from metasrv.program.config import ServerConfig
from metasrv_base.concurrency.turns import at_once

LEASE_MS = 10_000


def test_the_wait_of_the_default_lease_is_the_published_one() -> None:
    assert ServerConfig.model_fields["region_lease_ms"].default == LEASE_MS
    assert wait_ms(LEASE_MS) == 11_500


@given(
    sent=st.integers(0, 10**6),
    travel=st.integers(0, 60_000),
    rate=st.floats(1 - DRIFT / 3, 1 + DRIFT / 3),
)
def test_given_any_drift_in_bounds_when_free_here_then_ended_at_the_node(
    sent: int, travel: int, rate: float
) -> None:
    answered = sent + travel
    book = LeaseTable(LEASE_MS, 5_000, elected_at_ms=-(10**6))
    book.granted("dn-1", ["7"], answered)

    node_deadline = sent + LEASE_MS / rate  # counted from before the heartbeat was sent

    assert book.free_at_ms("dn-1", ["7"]) >= node_deadline


def test_given_a_new_leader_when_nothing_was_granted_by_it_then_its_predecessor_counts() -> None:
    book = LeaseTable(LEASE_MS, 5_000, elected_at_ms=1_000)

    assert book.free_at_ms("dn-1", ["7"]) == 1_000 + 5_000 + 11_500


def test_given_grants_to_others_when_asked_for_one_region_then_only_its_own_count() -> None:
    book = LeaseTable(LEASE_MS, 5_000, elected_at_ms=0)
    book.granted("dn-1", ["7"], 100_000)

    assert book.free_at_ms("dn-1", ["8"]) == book.quiet_until_ms
    assert book.free_at_ms("dn-1", ["7", "8"]) == 111_500


def test_given_an_ended_grant_when_forgotten_then_a_living_one_stays() -> None:
    book = LeaseTable(LEASE_MS, 5_000, elected_at_ms=0)
    book.granted("dn-1", ["7"], 100_000)
    book.granted("dn-1", ["8"], 105_000)

    at_once(book.forget(112_000))

    assert book.free_at_ms("dn-1", ["7"]) == book.quiet_until_ms
    assert book.free_at_ms("dn-1", ["8"]) == 116_500


def test_given_grants_of_a_node_when_asked_for_all_then_its_last_one_counts() -> None:
    book = LeaseTable(LEASE_MS, 5_000, elected_at_ms=0)
    book.granted("dn-1", ["7"], 100_000)
    book.granted("dn-1", [], 105_000)

    assert book.node_free_at_ms("dn-1") == book.free_at_ms("dn-1", ["7"]) == 111_500
    assert book.node_free_at_ms("dn-2") == book.quiet_until_ms


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["grant", "renew", "forget"]),
        st.sets(st.sampled_from("789")),
        st.integers(1, 20_000),
    ),
    max_size=12,
)
"""Each with the regions that are granted, and the ms after the step before."""


@given(STEPS)
def test_given_renewals_by_number_when_asked_then_as_if_each_region_had_been_granted(
    steps: list[tuple[str, set[str], int]],
) -> None:
    book = LeaseTable(LEASE_MS, 5_000, elected_at_ms=0)
    plain = LeaseTable(LEASE_MS, 5_000, elected_at_ms=0)
    now, since, standing = 100_000, 0, set[str]()
    for kind, regions, later_ms in steps:
        now += later_ms
        if kind == "grant":
            since, standing = now, regions
            book.granted("dn-1", sorted(regions), now)
            plain.granted("dn-1", sorted(regions), now)
        elif kind == "renew" and standing and book.renew("dn-1", since, now):
            plain.granted("dn-1", sorted(standing), now)
        else:
            at_once(book.forget(now))
        for region in "789":
            ends = [each.free_at_ms("dn-1", [region]) for each in (book, plain)]
            assert max(ends[0], now) == max(ends[1], now)
        assert book.node_free_at_ms("dn-1") == plain.node_free_at_ms("dn-1")
