"""Rights of a region to serve: its lease, or promises where it has copies (P4.5)."""

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.ports import RegionStore
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.slot import Slot, State
from dataplane.region.copies.leader_view import LeaderView
from dataplane.region.copies.promises import CopyHere
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.orders import CreateRegion, OpenRegion, RegionColumn
from tests.dataplane.datanode.promises.pair import COPY, LEADER, THIRD, view_of
from tests.fakes.clock import FakeClock

REGION, LEASE_MS = 7, 10_000
PROMISE = "has made no promise"
OWN = "promise to the leader before"
LEASE = "holds no lease"


@dataclass
class Led:
    """A region that is led, as its set and promises are judged."""

    view: LeaderView
    region_id: int = REGION
    ended: None = None

    @property
    def epoch(self) -> int:
        return self.view.epoch

    @property
    def is_alone(self) -> bool:
        return len(self.view.required) == 1

    def must_be_readable(self) -> None: ...

    def must_order(self) -> None: ...


class Bench:
    """One node that has run for a minute, and one region on it."""

    def __init__(
        self,
        epoch: int,
        led: Led | None = None,
        role: str = "leader",
        order_of: type[CreateRegion | OpenRegion] = OpenRegion,
    ) -> None:
        self.clock = FakeClock()
        self.leases = RegionLeases("i")
        self.regions = NodeRegionSet(
            cast(RegionStore, None), self.leases, self.clock, lambda work: work
        )
        self.clock.advance(60_000)
        members = [
            OrderedCopy(node=COPY.node, root=COPY.root, role="leader"),
            OrderedCopy(node=LEADER.node, root=LEADER.root, role="in-sync"),
        ]
        order = order_of(
            number=1,
            region_id=str(REGION),
            epoch=epoch,
            root=COPY.root,
            role=cast(Any, role),
            table_id=1,
            schema_version=1,
            schema_floor=1,
            key_columns=[1],
            columns=[RegionColumn(id=1, type="int64", nullable=False)],
            copies=RegionCopies(version=1, min_in_sync=1, members=members) if led else None,
        )
        self.slot = Slot(order, state="open", led=cast(LedRegion, led))
        self.regions._slots[REGION] = self.slot

    def lease(self) -> None:
        self.leases.sent(1, self.clock.now_ms)
        self.leases.granted(1, LEASE_MS, [(REGION, self.slot.epoch)])

    def receive(self, *copies: Any) -> None:
        for copy in copies:
            self.regions.promises.received.received(
                REGION, self.slot.epoch, copy, self.clock.now_ms
            )

    def reads(self) -> str | None:
        return refused(lambda: self.regions.must_have_lease(self.slot))

    def writes(self) -> str | None:
        reason = refused(lambda: self.regions.must_order(self.slot))
        assert self.regions._may_write(REGION, self.slot.epoch) is (reason is None)
        return reason


def refused(act: Any) -> str | None:
    try:
        act()
    except Unavailable as error:
        return str(error.facts["reason"])
    return None


def test_given_a_region_with_one_copy_then_it_serves_under_its_lease_and_waits_for_no_promise() -> (
    None
):
    bench = Bench(epoch=2)
    bench.regions.promises.given.give(REGION, LEADER, bench.clock.now_ms)
    assert LEASE in str(bench.reads())
    assert LEASE in str(bench.writes())

    bench.lease()

    assert bench.reads() is None
    assert bench.writes() is None


def test_given_copies_in_the_set_then_reads_need_the_promise_of_each_and_no_lease_helps() -> None:
    bench = Bench(2, Led(view_of(COPY, LEADER, THIRD, epoch=2)))
    bench.lease()
    assert PROMISE in str(bench.reads())
    assert bench.writes() is None, "copies acknowledge it, or refuse a leader of before"

    bench.receive(LEADER)
    assert PROMISE in str(bench.reads())

    bench.receive(THIRD)
    assert bench.reads() is None
    bench.clock.advance(1_997)
    assert bench.reads() is None
    bench.clock.advance(1)
    assert PROMISE in str(bench.reads())


def test_given_an_empty_region_with_copies_when_its_route_is_not_open_yet_then_it_serves_nothing() -> (  # noqa: E501
    None
):
    bench = Bench(1, Led(view_of(COPY, LEADER, epoch=1)), order_of=CreateRegion)
    bench.receive(LEADER)
    assert LEASE in str(bench.reads()), "the procedure that makes it may make it again, empty"
    assert LEASE in str(bench.writes())

    bench.lease()
    bench.clock.advance(LEASE_MS)
    bench.receive(LEADER)

    assert bench.reads() is None, "a lease was granted once: the route has said that it is open"
    assert bench.writes() is None


def test_given_a_leader_that_is_alone_in_its_set_then_it_reads_under_its_lease() -> None:
    bench = Bench(2, Led(view_of(COPY, epoch=2, learners=(LEADER,))))
    assert LEASE in str(bench.reads())
    assert LEASE in str(bench.writes())

    bench.lease()
    assert bench.reads() is None
    assert bench.writes() is None

    assert bench.slot.led is not None
    bench.slot.led.view.acknowledged(LEADER, 2, 0, 0)
    bench.slot.led.view.join(LEADER, 0)
    assert PROMISE in str(bench.reads()), "it is required from now on"


def test_given_a_leader_that_may_be_alone_when_it_requires_another_then_its_lease_too() -> None:
    """A failover waits for the lease of a leader that is alone by the route, and for no promise."""
    joining, leaving = view_of(COPY, epoch=2, learners=(LEADER,)), view_of(COPY, LEADER, epoch=2)
    joining.acknowledged(LEADER, 2, 0, 0)
    joining.join(LEADER, 0)
    leaving.expect_leave()
    for view in (joining, leaving):
        bench = Bench(2, Led(view))
        bench.receive(LEADER)
        assert LEASE in str(bench.reads())
        assert LEASE in str(bench.writes())

        bench.lease()
        assert bench.reads() is None
        assert bench.writes() is None
        bench.clock.advance(2_000)
        assert PROMISE in str(bench.reads())

        named = replace(view.members, version=2, in_sync=frozenset({COPY, LEADER}))
        view.read_route(named, bench.clock.now_ms)
        bench.clock.advance(LEASE_MS)
        bench.receive(LEADER)
        assert bench.reads() is None, "the route names both"


def test_given_a_leader_that_knows_of_copies_that_may_lead_then_it_needs_its_lease_too() -> None:
    """A promotion of one of them waits for this lease, and for no promise."""
    view = view_of(COPY, THIRD, epoch=2, learners=(LEADER,))
    view.members = replace(view.members, eligible=frozenset({LEADER}))
    bench = Bench(2, Led(view))
    bench.receive(THIRD)
    assert LEASE in str(bench.reads())

    bench.lease()
    assert bench.reads() is None
    bench.clock.advance(2_000)
    assert PROMISE in str(bench.reads())


@pytest.mark.parametrize("others", [(), (LEADER,)], ids=["alone", "with a copy"])
def test_given_a_promoted_copy_when_its_own_promise_lasts_then_it_serves_nothing(
    others: tuple[Any, ...],
) -> None:
    bench = Bench(2, Led(view_of(COPY, *others, epoch=2)))
    bench.regions.promises.given.give(REGION, LEADER, bench.clock.now_ms)
    bench.clock.advance(2_099)
    bench.lease()
    bench.receive(*others)
    assert OWN in str(bench.reads())
    assert OWN in str(bench.writes())

    bench.clock.advance(1)

    assert bench.reads() is None
    assert bench.writes() is None


def test_given_a_former_leader_that_follows_then_a_promoted_copy_serves_at_once() -> None:
    led = Led(view_of(COPY, LEADER, THIRD, epoch=2))
    bench = Bench(2, led)
    bench.regions.promises.given.give(REGION, LEADER, bench.clock.now_ms)
    bench.receive(LEADER, THIRD)
    led.view.acknowledged(THIRD, 2, 0, 0)
    assert OWN in str(bench.reads()), "who follows has not led"
    led.view.acknowledged(LEADER, 1, 0, 0)
    assert OWN in str(bench.writes()), "an answer of before"

    led.view.acknowledged(LEADER, 2, 0, 0)

    assert bench.reads() is None
    assert bench.writes() is None


def test_given_a_process_that_has_just_started_when_promoted_then_it_waits_but_at_epoch_1() -> None:
    for epoch, reason in ((1, None), (2, OWN)):
        bench = Bench(epoch, Led(view_of(COPY, LEADER, epoch=epoch)))
        bench.clock.advance(-59_000)
        bench.receive(LEADER)

        assert reason is None or reason in str(bench.reads())
        assert (bench.writes() is None) is (reason is None)


@pytest.mark.parametrize(
    ("state", "role", "here"),
    [
        ("open", "copy", CopyHere(COPY.root, 2, is_leader=False)),
        ("opening", "copy", CopyHere(COPY.root, 2, is_leader=False)),
        ("lost", "copy", None),
        ("opening", "leader", CopyHere(COPY.root, 2, is_leader=True)),
        ("restarted", "leader", CopyHere(COPY.root, 2, is_leader=True)),
    ],
)
def test_given_a_slot_when_asked_for_promises_then_it_is_a_copy_or_leads_from_its_order_on(
    state: State, role: str, here: CopyHere | None
) -> None:
    bench = Bench(2, role=role)
    bench.slot.state = state

    assert bench.regions.copy_here(REGION) == here
    assert bench.regions.copy_here(REGION + 1) is None
