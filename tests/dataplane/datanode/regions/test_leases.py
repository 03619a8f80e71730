"""Leases: counted from before the heartbeat was sent, for this incarnation, never too long."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.datanode.regions.leases import HEARTBEATS_REMEMBERED_MAX, RegionLeases
from metasrv_base.lease import usable_ms
from metasrv_base.wire.node.orders import LeaseGrant

REGION, EPOCH = 1024 << 32, 3


def test_given_a_grant_when_the_usable_time_ends_then_the_lease_has_ended() -> None:
    leases = RegionLeases("i1")

    leases.sent(1, now_ms=5_000)
    leases.granted(1, 10_000, [(REGION, EPOCH)])

    assert leases.deadline_ms(REGION, EPOCH) == 5_000 + 9_990
    assert leases.is_held(REGION, EPOCH, 14_989)
    assert not leases.is_held(REGION, EPOCH, 14_990)


def test_given_a_late_answer_when_granted_then_it_counts_from_the_sending() -> None:
    leases = RegionLeases("i1")
    leases.sent(1, now_ms=0)
    leases.sent(2, now_ms=2_000)

    leases.granted(1, 1_000, [(REGION, EPOCH)])

    assert not leases.is_held(REGION, EPOCH, 2_000)


def test_given_answers_out_of_order_when_granted_then_the_deadline_does_not_move_back() -> None:
    leases = RegionLeases("i1")
    leases.sent(1, now_ms=0)
    leases.sent(2, now_ms=2_000)

    leases.granted(2, 10_000, [(REGION, EPOCH)])
    leases.granted(1, 10_000, [(REGION, EPOCH)])

    assert leases.deadline_ms(REGION, EPOCH) == 2_000 + 9_990


def test_given_an_unknown_sequence_when_granted_then_there_is_no_lease() -> None:
    leases = RegionLeases("i1")
    leases.sent(1, now_ms=0)

    leases.granted(2, 10_000, [(REGION, EPOCH)])

    assert leases.deadline_ms(REGION, EPOCH) is None


def test_given_a_grant_of_another_incarnation_when_ordered_then_there_is_no_lease() -> None:
    leases = RegionLeases("i2")
    leases.sent(1, now_ms=0)

    leases.granted_by_order(
        REGION, EPOCH, LeaseGrant(incarnation="i1", heartbeat=1, lease_ms=10_000)
    )
    leases.granted_by_order(REGION, EPOCH, None)

    assert leases.deadline_ms(REGION, EPOCH) is None


def test_given_a_grant_at_one_epoch_when_asked_at_another_then_it_is_not_held() -> None:
    leases = RegionLeases("i1")
    leases.sent(1, now_ms=0)

    leases.granted_by_order(REGION, EPOCH, LeaseGrant(incarnation="i1", heartbeat=1, lease_ms=9))

    assert leases.is_held(REGION, EPOCH, 1)
    assert not leases.is_held(REGION, EPOCH + 1, 1)
    assert not leases.is_held(REGION, EPOCH - 1, 1)


def test_given_many_heartbeats_when_an_old_one_is_answered_then_it_is_forgotten() -> None:
    leases = RegionLeases("i1")
    for sequence in range(HEARTBEATS_REMEMBERED_MAX + 1):
        leases.sent(sequence, now_ms=sequence)

    leases.granted(0, 10_000, [(REGION, EPOCH)])
    assert leases.deadline_ms(REGION, EPOCH) is None

    leases.granted(1, 10_000, [(REGION, EPOCH)])
    assert leases.deadline_ms(REGION, EPOCH) is not None


@settings(derandomize=True)
@given(lease_ms=st.integers(0, 10**9), drift_ppm=st.integers(-1000, 1000))
def test_given_drift_within_the_bound_when_the_holder_stops_then_the_lease_lives(
    lease_ms: int, drift_ppm: int
) -> None:
    """`usable_ms` by the holder's clock lasts, in real time, no longer than the lease."""
    real_us = usable_ms(lease_ms) * 1_000_000_000 // (1_000_000 + drift_ppm)

    assert real_us <= lease_ms * 1000 + 1
