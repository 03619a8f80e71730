"""Copies join the set of their leader, and leave it: metasrv is asked, and asked again."""

from collections.abc import Callable, Sequence

from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.datanode.copies.set_changes import SetChanges
from dataplane.region.copies.leader_view import LAG_MS_MAX, SILENT_MS_MAX, CopyName
from dataplane.region.copies.promises import (
    ASK_MS,
    PROMISE_MS,
    AwakeTime,
    GivenPromises,
    kept_ms,
)
from dataplane.region.following.copy_region import StreamedRecords
from dataplane.region.following.leading import lead_new
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.node.copies import CopyStanding, OrderedCopy, RegionCopies
from metasrv_base.wire.node.copy_changes import CopyChange, CopyChangeResult
from metasrv_base.wire.node.orders import OrderError
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, place
from tests.fakes.clock import FakeClock

SECOND = CopyName("dn-2", B)
EPOCH = 2
PROMISED_MS = kept_ms(PROMISE_MS)


class Metasrv:
    """Answers by `answer`; None: the answer is lost."""

    def __init__(self) -> None:
        self.asked: list[CopyChange] = []
        self.answer: Callable[[CopyChange], CopyChangeResult | None] = done
        self.required: list[frozenset[CopyName]] = []
        self.led: LedRegion | None = None

    async def change_copies(self, changes: Sequence[CopyChange]) -> Sequence[CopyChangeResult]:
        assert self.led is not None
        self.asked += changes
        self.required.append(self.led.view.required)
        results = [self.answer(change) for change in changes]
        if None in results:
            raise Unavailable("not-ready", what="metasrv")
        return [result for result in results if result is not None]


def done(change: CopyChange) -> CopyChangeResult:
    return CopyChangeResult(
        region_id=change.region_id, procedure_id="p", copies_version=change.copies_version + 1
    )


def refused(code: str) -> Callable[[CopyChange], CopyChangeResult]:
    error = OrderError(code=code, facts={})
    return lambda change: CopyChangeResult(region_id=change.region_id, error=error)


def copies(version: int, second: CopyStanding, min_in_sync: int = 1) -> RegionCopies:
    members = [
        OrderedCopy(node="dn-1", root=A, role="leader"),
        OrderedCopy(node="dn-2", root=B, role=second),
    ]
    return RegionCopies(version=version, min_in_sync=min_in_sync, members=members)


class Bench:
    """A leader whose clock is set by the test, and whose copy is acknowledged for by hand. It was
    promoted to epoch 2 by a process that has just started."""

    def __init__(self, second: CopyStanding, min_in_sync: int = 1) -> None:
        self.clock, self.metasrv = FakeClock(), Metasrv()
        self.given, self.awake = GivenPromises(self.clock.mono_ms()), AwakeTime(self.clock.mono_ms)
        opening = lead_new(place(), SPEC, EPOCH)
        clocks = LeaderClocks(
            self.awake.now_ms,
            lambda: self.given.lets_grow(REGION_ID, EPOCH, self.clock.mono_ms()),
        )
        self.led = LedRegion(opening, copies(1, second, min_in_sync), clocks, lambda _: None)
        self.led.is_readable = True
        self.metasrv.led = self.led
        self.changes = SetChanges(lambda: [self.led], self.metasrv, self.clock)

    def acknowledged(self) -> None:
        """The copy has all that the leader has."""
        self.answers(self.led.view.end)

    def answers(self, durable: int) -> None:
        """The copy has the log up to *durable*."""
        records = StreamedRecords(EPOCH, self.led.region.log_history, self.led.view.common, ())
        self.led.answered(SECOND, records, durable)

    def wait(self, ms: int) -> None:
        """Passes time in which the process runs, and asks for promises."""
        for _ in range(ms // ASK_MS):
            self.clock.advance(ASK_MS)
            self.awake.now_ms()
        self.clock.advance(ms % ASK_MS)

    @property
    def in_sync(self) -> frozenset[CopyName]:
        return self.led.view.members.in_sync


async def test_given_a_learner_with_all_records_when_asked_then_it_is_required_before() -> None:
    bench = Bench("learner")
    bench.clock.advance(PROMISED_MS)
    await bench.changes.ask()
    assert bench.metasrv.asked == [], "it has not answered yet"
    bench.acknowledged()

    await bench.changes.ask()

    (change,) = bench.metasrv.asked
    assert (change.change, change.node, change.copies_version) == ("join", "dn-2", 1)
    assert SECOND in bench.metasrv.required[0]
    assert SECOND in bench.in_sync
    assert (bench.led.copies.version, bench.led.copies.members[1].role) == (2, "in-sync")
    await bench.changes.ask()
    assert len(bench.metasrv.asked) == 1


async def test_given_a_leader_that_may_have_promised_before_then_nobody_joins_until_it_ended() -> (
    None
):
    bench = Bench("learner")
    bench.acknowledged()
    bench.clock.advance(PROMISED_MS - 1)
    await bench.changes.ask()
    assert bench.metasrv.asked == []

    bench.clock.advance(1)
    await bench.changes.ask()

    assert len(bench.metasrv.asked) == 1


async def test_given_an_answer_that_is_lost_then_the_copy_stays_required_and_is_asked_again() -> (
    None
):
    bench = Bench("learner")
    bench.clock.advance(PROMISED_MS)
    bench.acknowledged()
    bench.metasrv.answer = lambda _: None
    await bench.changes.ask()
    assert SECOND in bench.led.view.required
    assert SECOND not in bench.in_sync

    bench.metasrv.answer = done
    await bench.changes.ask()

    first, again = bench.metasrv.asked
    assert first == again
    assert SECOND in bench.in_sync


async def test_given_a_refusal_for_good_then_it_is_asked_again_with_newer_copies_only() -> None:
    bench = Bench("learner")
    bench.clock.advance(PROMISED_MS)
    bench.acknowledged()
    bench.metasrv.answer = refused("version-mismatch")
    for _ in range(3):
        await bench.changes.ask()
    assert len(bench.metasrv.asked) == 1
    assert SECOND in bench.led.view.required, "an earlier copy of the request may have been done"

    bench.led.hear(copies(2, "learner"))
    assert SECOND not in bench.led.view.required
    bench.metasrv.answer = done
    await bench.changes.ask()

    assert bench.metasrv.asked[1].copies_version == 2
    assert SECOND in bench.in_sync


async def test_given_a_copy_that_left_in_silence_then_it_joins_by_an_answer_and_not_by_an_old_one() -> (  # noqa: E501
    None
):
    bench = Bench("in-sync")
    bench.clock.advance(PROMISED_MS)
    bench.acknowledged()
    bench.acknowledged()
    bench.wait(SILENT_MS_MAX)
    await bench.changes.ask()
    assert SECOND not in bench.in_sync

    for _ in range(3):
        await bench.changes.ask()
    assert SECOND not in bench.in_sync, "its node and disk may be gone"
    assert bench.led.is_due(SECOND)
    bench.acknowledged()
    await bench.changes.ask()

    assert [change.change for change in bench.metasrv.asked] == ["leave", "join"]
    assert SECOND in bench.in_sync


async def test_given_a_leader_that_is_told_that_its_last_copy_leaves_then_it_may_be_alone() -> None:
    bench = Bench("in-sync")
    leaves = copies(1, "in-sync").model_copy(update={"last_leaves": True})
    assert not bench.led.view.may_be_alone

    bench.led.hear(leaves)
    assert bench.led.view.may_be_alone
    assert SECOND in bench.led.view.required, "until the route says otherwise"
    bench.led.hear(copies(1, "in-sync"))
    assert bench.led.view.may_be_alone, "by an order that was late"

    bench.led.hear(leaves.model_copy(update={"version": 0}))
    bench.led.hear(copies(2, "in-sync"))
    assert not bench.led.view.may_be_alone, "the route names both again"


async def test_given_a_leader_that_opens_by_the_order_that_its_last_copy_leaves_then_it_knows() -> (
    None
):
    leaves = copies(1, "in-sync").model_copy(update={"last_leaves": True})
    clocks = LeaderClocks(lambda: 0, lambda: True)

    led = LedRegion(lead_new(place(), SPEC, EPOCH), leaves, clocks, lambda _: None)

    assert led.view.may_be_alone


async def test_given_a_copy_whose_disk_was_emptied_then_it_leaves_and_joins_with_all_again() -> (
    None
):
    bench = Bench("in-sync")
    bench.clock.advance(PROMISED_MS)
    bench.led.view.appended(5, bench.awake.now_ms())
    bench.acknowledged()
    bench.acknowledged()  # and knows that it counts
    assert not bench.led.is_due(SECOND)

    bench.answers(0)
    await bench.changes.ask()
    assert SECOND not in bench.in_sync
    assert bench.led.is_due(SECOND)
    await bench.changes.ask()
    bench.acknowledged()
    await bench.changes.ask()

    assert [change.change for change in bench.metasrv.asked] == ["leave", "join"]
    assert SECOND in bench.in_sync


async def test_given_a_copy_that_makes_no_progress_then_it_is_to_leave_and_is_required_until_then() -> (  # noqa: E501
    None
):
    bench = Bench("in-sync")
    bench.led.view.appended(1, bench.awake.now_ms())
    for _ in range(LAG_MS_MAX // ASK_MS - 1):
        bench.wait(ASK_MS)
        bench.led.note_answer(SECOND)
    await bench.changes.ask()
    assert bench.metasrv.asked == [], "it answers"
    bench.wait(ASK_MS)
    bench.led.note_answer(SECOND)
    bench.metasrv.answer = refused("object-locked")
    await bench.changes.ask()
    assert SECOND in bench.led.view.required

    bench.metasrv.answer = done
    await bench.changes.ask()

    asked = [(change.change, change.reason) for change in bench.metasrv.asked]
    assert asked == [("leave", "no progress for 10 s")] * 2
    assert str(REGION_ID) == bench.metasrv.asked[0].region_id
    assert bench.led.is_alone
    assert bench.led.copies.members[1].role == "learner"


async def test_given_a_copy_that_answers_nothing_when_its_promise_has_ended_then_it_is_to_leave() -> (  # noqa: E501
    None
):
    bench = Bench("in-sync")
    bench.acknowledged()
    bench.wait(SILENT_MS_MAX - 1)
    await bench.changes.ask()
    assert bench.metasrv.asked == []

    bench.clock.advance(1)
    await bench.changes.ask()

    (change,) = bench.metasrv.asked
    assert (change.change, change.reason) == ("leave", "no answer for 2 s")


async def test_given_a_silent_copy_that_the_minimum_needs_then_it_stays_for_as_long_as_a_slow_one() -> (  # noqa: E501
    None
):
    bench = Bench("in-sync", min_in_sync=2)
    bench.wait(LAG_MS_MAX - 1)
    await bench.changes.ask()
    assert bench.metasrv.asked == []

    bench.clock.advance(1)
    await bench.changes.ask()

    (change,) = bench.metasrv.asked
    assert (change.change, change.reason) == ("leave", "no answer for 10 s")


async def test_given_a_leader_that_stood_still_when_it_goes_on_then_its_copy_stays() -> None:
    bench = Bench("in-sync")
    bench.wait(ASK_MS)
    bench.led.view.appended(1, bench.awake.now_ms())
    bench.clock.advance(60_000)

    await bench.changes.ask()
    bench.wait(ASK_MS)
    await bench.changes.ask()

    assert bench.metasrv.asked == [], "nobody could answer it meanwhile"
    bench.acknowledged()
    bench.wait(SILENT_MS_MAX)
    await bench.changes.ask()
    assert [change.change for change in bench.metasrv.asked] == ["leave"]


async def test_given_a_promise_that_lasts_when_little_is_left_of_it_then_that_is_waited_for() -> (
    None
):
    bench = Bench("learner")
    bench.acknowledged()
    bench.clock.advance(PROMISED_MS - 100)
    bench.given.give(REGION_ID, SECOND, bench.clock.mono_ms() - PROMISED_MS + 300)
    bench.clock.advance(299)
    await bench.changes.ask()
    assert bench.metasrv.asked == []

    bench.clock.advance(1)
    await bench.changes.ask()

    assert [change.change for change in bench.metasrv.asked] == ["join"]


def marked(change: CopyChange) -> CopyChangeResult:
    return done(change).model_copy(update={"eligible": change.eligible})


async def test_given_a_silent_copy_when_too_few_are_left_then_it_leaves_and_may_lead() -> None:
    bench = Bench("in-sync", min_in_sync=2)
    bench.metasrv.answer = marked
    bench.acknowledged()
    bench.wait(LAG_MS_MAX)

    await bench.changes.ask()

    (change,) = bench.metasrv.asked
    assert (change.change, change.eligible) == ("leave", True)
    assert bench.led.view.is_frozen
    bench.acknowledged()
    bench.clock.advance(PROMISED_MS)
    await bench.changes.ask()
    assert SECOND in bench.in_sync
    assert not bench.led.view.members.eligible
    assert not bench.led.view.is_frozen


async def test_given_a_copy_that_has_answered_nothing_when_it_leaves_then_it_may_not_lead() -> None:
    bench = Bench("in-sync", min_in_sync=2)
    bench.wait(LAG_MS_MAX)

    await bench.changes.ask()

    assert [change.eligible for change in bench.metasrv.asked] == [False]
    assert not bench.led.view.is_frozen


async def test_given_a_server_that_knows_no_eligible_copies_then_the_set_shrinks_without() -> None:
    def before(change: CopyChange) -> CopyChangeResult:
        if change.eligible:
            raise Refused("invalid-request")
        return done(change)

    bench = Bench("in-sync", min_in_sync=2)
    bench.metasrv.answer = before
    bench.acknowledged()
    bench.wait(LAG_MS_MAX)

    await bench.changes.ask()

    assert [change.eligible for change in bench.metasrv.asked] == [True, False]
    assert SECOND not in bench.in_sync
    assert not bench.led.view.is_frozen
