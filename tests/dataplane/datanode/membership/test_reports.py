"""Reports of a node as the leader has them: whole, or by changes, with messages lost on the way."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.datanode.membership.reports import NodeReports
from metasrv.nodes.heartbeats.region_report import RegionReport, report_of
from metasrv_base.concurrency.turns import at_once
from metasrv_base.wire.node.nodes import (
    Grant,
    HeartbeatAnswer,
    HeartbeatRequest,
    RegionStat,
    digest_of,
)
from tests.metasrv.nodes.leader import beat
from tests.metasrv.nodes.samples import stat

REGIONS = [str(1024 + number << 32) for number in range(6)]


class KeepingLeader:
    """Keeps the report of one node, as a leader does. Its answers may be lost."""

    def __init__(self) -> None:
        self.kept: tuple[int, RegionReport] | None = None

    def hear(self, request: HeartbeatRequest) -> HeartbeatAnswer:
        report = report_of(request, self.kept)
        if report is None:
            return answer(request.sequence, wants_whole=True)
        if request.changes_since is None:
            at_once(report.digested())
        self.kept = request.sequence, report
        return answer(request.sequence, is_kept=True)


def answer(sequence: int, **facts: object) -> HeartbeatAnswer:
    plain = HeartbeatAnswer(
        sequence=sequence, term=1, lease_ms=1, settings_version=1, catalog_version=1
    )
    return plain.model_copy(update=facts)


def request_of(
    reports: NodeReports, sequence: int, stats: Sequence[RegionStat]
) -> HeartbeatRequest:
    """As it arrives."""
    sent = beat(sequence).model_copy(update=reports.facts(sequence, stats))
    return HeartbeatRequest.model_validate_json(sent.model_dump_json())


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, list[RegionStat]]]:
    """The fate of each heartbeat, and the regions that it tells of."""
    history, regions = [], dict[str, RegionStat]()
    for _ in range(draw(st.integers(1, 12))):
        for name in draw(st.lists(st.sampled_from(REGIONS), max_size=3)):
            if draw(st.booleans()):
                regions.pop(name, None)
            else:
                facts = {
                    "rows": draw(st.integers(0, 3)),
                    "epoch": draw(st.integers(1, 2)),
                    "copies_version": draw(st.integers(0, 1)),
                }
                regions[name] = stat(name).model_copy(update=facts)
        fate = draw(st.sampled_from(["heard", "heard", "lost", "answer lost", "new leader"]))
        history.append((fate, list(regions.values())))
    return history


@given(histories())
def test_given_any_history_when_a_report_is_kept_then_it_is_what_the_node_has(
    history: list[tuple[str, list[RegionStat]]],
) -> None:
    reports, leader = NodeReports(), KeepingLeader()
    for sequence, (fate, stats) in enumerate(history, start=1):
        request = request_of(reports, sequence, stats)
        if fate == "lost":
            continue
        leader = KeepingLeader() if fate == "new leader" else leader
        heard = leader.hear(request)
        if heard.is_kept:
            assert leader.kept is not None
            kept = dict(leader.kept[1])
            assert kept == {each.region_id: each for each in stats}
            assert set(leader.kept[1].in_state("open")) == set(kept)
        if fate != "answer lost":
            reports.answered(heard)
            assert reports.is_wanted == heard.wants_whole


def test_given_idle_regions_when_reported_again_then_none_of_them_is_sent() -> None:
    reports, leader = NodeReports(), KeepingLeader()
    stats = [stat(name) for name in REGIONS]
    reports.answered(leader.hear(request_of(reports, 1, stats)))

    stats[2] = stats[2].model_copy(update={"rows": 7})
    request = request_of(reports, 2, stats)

    assert request.regions.region_id == [REGIONS[2]]
    assert request.changes_since == 1
    heard = leader.hear(request)
    assert heard.is_kept
    assert leader.kept is not None
    assert leader.kept[1][REGIONS[2]].rows == 7


def test_given_only_numbers_that_change_when_applied_then_the_report_is_the_same_object() -> None:
    reports, leader = NodeReports(), KeepingLeader()
    reports.answered(leader.hear(request_of(reports, 1, [stat(name) for name in REGIONS])))
    assert leader.kept is not None
    before = leader.kept[1]

    more = [stat(name).model_copy(update={"rows": 7}) for name in REGIONS]
    reports.answered(leader.hear(request_of(reports, 2, more)))
    assert leader.kept[1] is before

    reports.answered(leader.hear(request_of(reports, 3, more[1:])))
    assert leader.kept[1] is not before


def test_given_a_report_that_went_wrong_when_changes_come_then_a_whole_one_is_wanted() -> None:
    reports, leader = NodeReports(), KeepingLeader()
    stats = [stat(name) for name in REGIONS]
    reports.answered(leader.hear(request_of(reports, 1, stats)))
    assert leader.kept is not None
    other = RegionReport(request_of(NodeReports(), 1, stats[1:]).regions)
    at_once(other.digested())
    leader.kept = 1, other

    heard = leader.hear(request_of(reports, 2, stats))
    reports.answered(heard)
    again = leader.hear(request_of(reports, 3, stats))

    assert (heard.wants_whole, heard.is_kept) == (True, False)
    assert again.is_kept
    assert set(leader.kept[1]) == set(REGIONS)


def test_given_a_leader_that_keeps_nothing_when_told_again_then_all_of_it_as_before() -> None:
    reports = NodeReports()
    reports.facts(1, [stat(REGIONS[0])])
    reports.answered(answer(1))

    assert set(reports.facts(2, [stat(REGIONS[0])])) == {"regions"}


def test_given_grants_by_number_when_taken_then_those_of_that_answer_and_no_other() -> None:
    reports = NodeReports()
    granted = [Grant(region_id=REGIONS[0], epoch=2)]
    reports.facts(1, [stat(REGIONS[0])])
    assert list(reports.answered(answer(1, grants=granted, is_kept=True))) == [(1024 << 32, 2)]

    assert reports.facts(2, [stat(REGIONS[0])])["granted_by"] == 1
    assert list(reports.answered(answer(2, renews=1, is_kept=True))) == [(1024 << 32, 2)]
    reports.facts(3, [stat(REGIONS[0])])
    assert list(reports.answered(answer(3, renews=2, is_kept=True))) == []


@pytest.mark.parametrize("field", ["epoch", "rows", "root", "state", "version", "copies_version"])
def test_given_one_field_that_differs_when_digested_then_the_digest_does(field: str) -> None:
    one = stat(REGIONS[0])
    other = one.model_copy(update={field: "x" if field in ("root", "state") else 9})

    assert digest_of([one]) != digest_of([other])
    assert digest_of([one, other]) == digest_of([other]) ^ digest_of([one])
