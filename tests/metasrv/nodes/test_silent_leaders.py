"""A leader that a copy reports as silent: every case of who answers, and the budget (G56)."""

from collections.abc import Collection

import pytest

from dataplane.region.copies.leader_silence import SILENCE_MS, WATCH_MS
from dataplane.region.copies.promises import PROMISE_MS, kept_ms
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState
from metasrv.nodes.silent_leaders import (
    CUT_OFF_MS,
    PROBE_MS,
    STALLED_MS,
    ProbeResult,
    SilenceProbe,
    SilenceVerdict,
    judge_silence,
    other_copy,
    silence_hold,
    silent_regions,
)
from metasrv.nodes.status import Hold, NodeState, NodeStatus
from tests.metasrv.nodes.samples import node

ASKED_NOBODY, UNANSWERED = ProbeResult.NOT_ASKED, ProbeResult.UNANSWERED
HEARS, SILENT = ProbeResult.HEARS, ProbeResult.SILENT
MAINTENANCE = Hold("maintenance", "it is switched off")
ALIVE, DEAD = NodeState.ALIVE, NodeState.DEAD


def region(number: int = 1, epoch: int = 3, **roles: str) -> RegionRoute:
    """A region that dn-1 leads; *roles* of the others by node, as dn_2="in-sync"."""
    copies = tuple(
        RegionCopy(node=name.replace("_", "-"), root=f"/{name}", role=CopyRole(role))
        for name, role in roles.items()
    )
    return RegionRoute(
        region_id=str(number),
        leader="dn-1",
        epoch=epoch,
        state=RegionState.OPEN,
        root="/dn-1",
        announced=True,
        copies=copies,
        copies_version=1,
    )


BOTH = frozenset({"dn-2", "dn-3"})
REGION = region(dn_2="in-sync", dn_3="in-sync", dn_4="learner")


def cluster(size: int, *dead: str) -> list[NodeStatus]:
    names = [f"dn-{number}" for number in range(1, size + 1)]
    return [
        NodeStatus(node(name), DEAD if name in dead else ALIVE, 0.0, 0, 0, None, {})
        for name in names
    ]


@pytest.mark.parametrize(
    ("leader", "other", "verdict"),
    [
        (UNANSWERED, ASKED_NOBODY, SilenceVerdict.PROMOTE),
        (UNANSWERED, SILENT, SilenceVerdict.PROMOTE),
        (UNANSWERED, UNANSWERED, SilenceVerdict.PROMOTE),
        (UNANSWERED, HEARS, SilenceVerdict.ALIVE),
        (HEARS, ASKED_NOBODY, SilenceVerdict.ALIVE),
        (HEARS, SILENT, SilenceVerdict.ALIVE),
        (HEARS, UNANSWERED, SilenceVerdict.ALIVE),
        (HEARS, HEARS, SilenceVerdict.ALIVE),
    ],
)
def test_given_the_answers_of_leader_and_copy_when_judged_then_one_that_hears_is_enough(
    leader: ProbeResult, other: ProbeResult, verdict: SilenceVerdict
) -> None:
    probe = SilenceProbe(leader, other, silent_ms=CUT_OFF_MS - 1, copies=BOTH)
    promoted = [REGION] if verdict is SilenceVerdict.PROMOTE else []
    judged, regions = judge_silence([REGION], probe, None)
    assert (judged, list(regions)) == (verdict, promoted)
    assert judge_silence([REGION], probe, MAINTENANCE) == (SilenceVerdict.HELD, ())
    assert judge_silence([], probe, None) == (SilenceVerdict.OVER, ())


@pytest.mark.parametrize(
    ("leader", "other", "silent_ms", "is_promoted"),
    [
        (HEARS, SILENT, CUT_OFF_MS, True),
        (HEARS, SILENT, CUT_OFF_MS - 1, False),
        (HEARS, HEARS, CUT_OFF_MS, False),
        (HEARS, UNANSWERED, CUT_OFF_MS, False),
        (HEARS, ASKED_NOBODY, CUT_OFF_MS, False),
    ],
)
def test_given_a_leader_that_metasrv_hears_and_no_copy_then_one_of_them_is_promoted(
    leader: ProbeResult, other: ProbeResult, silent_ms: int, is_promoted: bool
) -> None:
    more = region(2, dn_2="in-sync", dn_3="in-sync", dn_4="in-sync")
    pair = region(3, dn_2="in-sync", dn_3="learner")
    probe = SilenceProbe(leader, other, silent_ms=silent_ms, copies=BOTH)

    verdict, regions = judge_silence([REGION, more, pair], probe, None)

    assert list(regions) == ([REGION] if is_promoted else [])
    assert verdict is (SilenceVerdict.PROMOTE if is_promoted else SilenceVerdict.ALIVE)


def test_given_a_probe_in_which_this_server_stood_still_then_it_says_nothing_of_the_nodes() -> None:
    probe = SilenceProbe(UNANSWERED, SILENT, took_ms=STALLED_MS + 1)

    assert judge_silence([REGION], probe, None) == (SilenceVerdict.HELD, ())


@pytest.mark.parametrize(
    ("route", "epoch", "reporter", "counts"),
    [
        (REGION, 3, "dn-2", True),
        (REGION, 2, "dn-2", False),
        (REGION, 4, "dn-2", False),
        (REGION, 3, "dn-4", False),
        (REGION, 3, "dn-9", False),
        (REGION.model_copy(update={"leader": "dn-2"}), 3, "dn-3", False),
        (REGION.model_copy(update={"unverified": True}), 3, "dn-2", False),
    ],
    ids=[
        "a copy of the set",
        "an older epoch: its leader was replaced",
        "a newer epoch than the catalog has",
        "a learner, which nobody promotes",
        "a node without a copy",
        "another node leads",
        "restored, and not adopted",
    ],
)
def test_given_a_report_then_only_regions_count_that_are_led_so_with_the_reporter_in_the_set(
    route: RegionRoute, epoch: int, reporter: str, counts: bool
) -> None:
    assert silent_regions([(route, epoch)], "dn-1", reporter) == ((route,) if counts else ())


@pytest.mark.parametrize(
    ("regions", "alive", "asked"),
    [
        ([REGION], {"dn-1", "dn-2", "dn-3", "dn-4"}, "dn-3"),
        ([REGION], {"dn-2", "dn-4"}, None),
        ([region(dn_2="in-sync")], {"dn-2", "dn-3"}, None),
        (
            [
                region(1, dn_2="in-sync", dn_3="in-sync"),
                region(2, dn_2="in-sync", dn_4="in-sync"),
                region(3, dn_2="in-sync", dn_4="in-sync"),
            ],
            {"dn-2", "dn-3", "dn-4"},
            "dn-4",
        ),
    ],
    ids=["a third copy", "a third copy that is dead", "two copies", "the node with most of them"],
)
def test_given_regions_then_a_third_copy_is_asked_where_there_is_one(
    regions: list[RegionRoute], alive: Collection[str], asked: str | None
) -> None:
    assert other_copy(regions, "dn-2", alive) == asked


@pytest.mark.parametrize(
    ("size", "dead", "unanswered", "is_held"),
    [
        (2, (), ("dn-1",), False),
        (3, (), ("dn-1",), False),
        (3, (), ("dn-1", "dn-3"), True),
        (4, (), ("dn-1", "dn-3"), False),
        (3, ("dn-3",), ("dn-1",), True),
        (5, ("dn-3",), ("dn-1",), False),
        (3, ("dn-1",), ("dn-1",), False),
    ],
)
def test_given_nodes_that_do_not_answer_then_they_count_for_the_storm_guard(
    size: int, dead: tuple[str, ...], unanswered: tuple[str, ...], is_held: bool
) -> None:
    statuses = cluster(size, *dead)
    leading = {status.node.node_id for status in statuses}

    hold = silence_hold(statuses, leading, unanswered, None)

    assert (hold is not None) is is_held
    assert silence_hold(statuses, leading, unanswered, MAINTENANCE) == MAINTENANCE


FIRST_WRITE_MS = 5_000


def test_the_timers_of_a_failover_leave_three_seconds_for_its_work() -> None:
    """From the kill to the first write, the reads of docs/protocols.md P4.5: silence that is
    noticed, and the probe; beside them the promise that was given last, just before the kill."""
    noticed_ms = SILENCE_MS + WATCH_MS
    decided_ms = noticed_ms + PROBE_MS

    assert decided_ms == 1_600
    assert kept_ms(PROMISE_MS) == 2_100
    assert FIRST_WRITE_MS - decided_ms >= 3_000, "report, two commits, one order"
    assert FIRST_WRITE_MS - kept_ms(PROMISE_MS) >= 2_900, "the promise ends beside all of it"
