"""A node with copies tells metasrv of leaders that have stopped to ask for promises."""

from dataplane.datanode.promises.silence_reports import SilenceReports
from dataplane.region.copies.leader_silence import (
    SILENCE_MS,
    WATCH_MS,
    FollowedHere,
    SilentLeader,
)
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.silences import SILENT_REGIONS_MAX, SilenceAnswer, SilenceReport
from tests.dataplane.datanode.promises.pair import COPY, LEADER, Peers, PromisingNode
from tests.sim.loop import SimClock, SimLoop, run

REGION = 7


class Metasrv:
    """Notes reports with their times; a server that is away answers none."""

    def __init__(self, clock: SimClock) -> None:
        self.clock = clock
        self.reports: list[tuple[int, SilenceReport]] = []
        self.is_away = False

    async def report_silence(self, report: SilenceReport, deadline_ms: int) -> SilenceAnswer:
        self.reports.append((self.clock.mono_ms(), report))
        if self.is_away:
            await self.clock.sleep_ms(deadline_ms)
            raise Unavailable("not-ready", what="metasrv")
        return SilenceAnswer(verdict="alive", procedure_ids=[])


def lived(is_away: bool) -> tuple[int, list[tuple[int, SilenceReport]]]:
    """Returns when the leader died, and the reports of five seconds from then on."""

    async def main(loop: SimLoop) -> tuple[int, list[tuple[int, SilenceReport]]]:
        clock = SimClock(loop)
        leader, copy = PromisingNode("dn-1", clock), PromisingNode("dn-2", clock)
        leader.lead(REGION, COPY)
        copy.follow(REGION)
        metasrv = Metasrv(clock)
        metasrv.is_away = is_away
        followed = [FollowedHere(REGION, 1, LEADER.node)]
        reports = SilenceReports(copy.ports, lambda: followed, metasrv)
        loop.spawn("dn-1", leader.asker(Peers({"http://dn-2": copy})).run())
        loop.spawn("dn-2", reports.run())
        await clock.sleep_ms(10_000)
        assert metasrv.reports == [], "it asks twice a second"
        died_ms = clock.mono_ms()
        loop.kill("dn-1")
        await clock.sleep_ms(5_000)
        loop.kill("dn-2")
        return died_ms, metasrv.reports

    return run(main, 1)


def test_given_a_leader_that_dies_then_it_is_reported_in_time_and_once_a_second() -> None:
    died_ms, reports = lived(is_away=False)

    first_ms, first = reports[0]
    assert first_ms - died_ms <= SILENCE_MS + WATCH_MS
    assert (first.leader, first.region_id, first.epoch) == ("dn-1", ["7"], [1])
    assert first.silent_ms >= SILENCE_MS
    assert len(reports) in (4, 5)


def test_given_a_metasrv_that_is_away_then_one_report_is_under_way_at_a_time() -> None:
    _, reports = lived(is_away=True)

    assert len(reports) == 2, "each waits for two seconds"


def test_given_more_regions_than_one_report_names_when_told_again_then_each_has_its_turn() -> None:
    more = 3
    regions = [
        FollowedHere(number, 1, LEADER.node) for number in range(1, 1 + SILENT_REGIONS_MAX + more)
    ]

    async def main(loop: SimLoop) -> list[tuple[str, int]]:
        clock = SimClock(loop)
        metasrv = Metasrv(clock)
        reports = SilenceReports(PromisingNode("dn-2", clock).ports, lambda: regions, metasrv)
        for is_away, left in ((False, 0), (True, 0), (False, 0), (False, 0), (False, more)):
            metasrv.is_away = is_away
            await reports.report(SilentLeader(LEADER.node, SILENCE_MS, regions[left:]))
        return [(report.region_id[0], len(report.region_id)) for _, report in metasrv.reports]

    last = (str(SILENT_REGIONS_MAX + 1), more)
    assert run(main, 1) == [
        ("1", SILENT_REGIONS_MAX),
        last,  # not heard
        last,
        ("1", SILENT_REGIONS_MAX),
        (str(1 + more), SILENT_REGIONS_MAX),  # the others have left
    ]
