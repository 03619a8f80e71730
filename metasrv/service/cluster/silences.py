"""POST /internal/v1/nodes/{node_id}/silent-leaders: copies report a leader, and are promoted."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.records import ClientRequirements
from keys.model.tables import RegionRoute
from metasrv.leadership.term import SilenceProbePort, Term
from metasrv.nodes.silent_leaders import (
    PROBE_MS,
    ProbeResult,
    SilenceProbe,
    SilenceVerdict,
    judge_silence,
    other_copy,
    silence_hold,
    silent_regions,
)
from metasrv.nodes.status import GONE, Hold
from metasrv.service.cluster.internal import wrong_node
from metasrv.service.named import find_region, is_node_id, is_region_id, no_node_id, no_region_id
from metasrv.service.requests.submit_ddl import only_the_leader, stored
from metasrv.service.state.state import ServerState
from metasrv_base.errors import MetaError, NotFound, Unavailable
from metasrv_base.wire.node.silences import SilenceAnswer, SilenceReport
from metasrv_base.wire.problem.problems import FieldError, refuse
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable

HEARD_MS_MAX = 1_000
"""A copy hears a leader that asked it for a promise within this time."""

log = structlog.get_logger()
Reported = Sequence[tuple[CatalogTable, RegionRoute]]


async def report(
    state: ServerState, node_id: str, request: SilenceReport, by: str | None
) -> SilenceAnswer:
    """Promotions are durable when they are answered. One look at a leader at a time.

    Raises NotLeader with the leader's URL where another server leads, and as
    `NodeLiveness.sender_of`.
    """
    term = await state.leading()
    refuse(tuple(_wrong(node_id, request)))
    term.nodes.sender_of(request, by)
    if term.probe is None or request.leader in term.looked_at:
        return _answer(SilenceVerdict.HELD)
    term.looked_at.add(request.leader)
    try:
        with only_the_leader():
            return await _Look(state, term, term.probe, request).decide()
    finally:
        term.looked_at.discard(request.leader)


@dataclass(frozen=True, slots=True)
class _Look:
    """One report, and what is found about its leader."""

    state: ServerState
    term: Term
    probe: SilenceProbePort
    request: SilenceReport

    async def decide(self) -> SilenceAnswer:
        reported = self._reported()
        if not reported:
            return _answer(SilenceVerdict.OVER)
        began_ms = self.state.clock.mono_ms()
        other = other_copy([region for _, region in reported], self.request.node_id, self._alive())
        leader_result, (other_result, other_silent_ms) = await asyncio.gather(
            self._leader(self.request.leader), self._other(other)
        )
        probe = SilenceProbe(
            leader_result,
            other_result,
            took_ms=self.state.clock.mono_ms() - began_ms,
            silent_ms=min(self.request.silent_ms, other_silent_ms),
            copies=frozenset({self.request.node_id, other or ""}),
        )
        answers = {self.request.leader: leader_result, other: other_result}
        unanswered = [
            node
            for node, result in answers.items()
            if node is not None and result is ProbeResult.UNANSWERED
        ]
        reported = self._reported()  # the catalog may have moved meanwhile
        regions = [region for _, region in reported]
        verdict, promoted = judge_silence(regions, probe, self._hold(unanswered))
        facts = {"leader": self.request.leader, "reporter": self.request.node_id}
        log.info("silent_leader_judged", verdict=verdict.value, **facts)
        if verdict is not SilenceVerdict.PROMOTE:
            return _answer(verdict)
        of_them = [each for each in reported if each[1] in promoted]
        return _answer(verdict, await self._promoted(of_them))

    def _reported(self) -> Reported:
        """The regions of the report that count, with their tables, as the applied catalog has
        them; none that a failover moves already."""
        moving = self._moving()
        reported = list[tuple[CatalogTable, RegionRoute]]()
        for region_id, epoch in zip(self.request.region_id, self.request.epoch, strict=True):
            try:
                table, region = find_region(self.state.follower.catalog, region_id)
            except NotFound:
                continue
            counts = silent_regions([(region, epoch)], self.request.leader, self.request.node_id)
            if counts and region_id not in moving:
                reported.append((table, region))
        return reported

    def _moving(self) -> set[str]:
        """Regions of living failovers of tables. That the node is failed over as a whole says
        nothing of them: this may last for as long as the files of one table are lost, and a child
        that comes later moves nothing."""
        moving = set[str]()
        for _, entry in self.term.manager.living():
            record = entry.held.record
            if record.kind == FAILOVER_TABLE.name:
                moving.update(record.state["region_ids"])
        return moving

    def _alive(self) -> set[str]:
        statuses = self.term.nodes.statuses()
        return {status.node.node_id for status in statuses if status.state not in GONE}

    async def _leader(self, node: str) -> ProbeResult:
        """Any answer of the leader's process says that it is not silent."""
        answered, _ = await self._asked(node)
        return ProbeResult.HEARS if answered else ProbeResult.UNANSWERED

    async def _other(self, node: str | None) -> tuple[ProbeResult, int]:
        """The answer of another copy, and for how long it has not heard the leader; 0: it does not
        say."""
        if node is None:
            return ProbeResult.NOT_ASKED, 0
        answered, silent_ms = await self._asked(node)
        if not answered:
            return ProbeResult.UNANSWERED, 0
        hears = silent_ms is not None and silent_ms < HEARD_MS_MAX
        return ProbeResult.HEARS if hears else ProbeResult.SILENT, silent_ms or 0

    async def _asked(self, node: str) -> tuple[bool, int | None]:
        """Whether a node answered, and for how long the leader has been silent to it."""
        address = self.term.nodes.address_of(node)
        if address is None:
            return False, None
        try:
            answer = await self.probe.silence_at(address, self.request.leader, PROBE_MS)
        except Unavailable:
            return False, None
        except MetaError:  # it refuses, so it is there
            return True, None
        return True, answer.silent_ms

    def _hold(self, unanswered: Sequence[str]) -> Hold | None:
        maintenance = self.term.settings.maintenance
        hold = None if maintenance is None else Hold("maintenance", "it is switched off")
        catalog = self.state.follower.catalog
        leading = {node for node, count in catalog.led.items() if count}
        return silence_hold(self.term.nodes.statuses(), leading, unanswered, hold)

    async def _promoted(self, reported: Reported) -> list[str]:
        """Submits one failover for each table."""
        tables = {table.info.table_id: table for table, _ in reported}
        procedures = list[str]()
        for table_id, table in sorted(tables.items()):
            regions = [region for of, region in reported if of.info.table_id == table_id]
            failover = FailoverTable(
                table_id=table_id,
                name=table.info.full_name,
                source=self.request.leader,
                region_ids=tuple(region.region_id for region in regions),
                reason=f"silent for {self.request.silent_ms} ms to {self.request.node_id}",
            )
            request = SubmitRequest(
                self.state.ids.procedure_id(),
                ClientRequirements(
                    submitted_by="metasrv",
                    request_id="",
                    statement={"automatic": "failover", "node": self.request.leader},
                ),
                fingerprint="",
            )
            submitted = await stored(self.state, self.term, FAILOVER_TABLE, failover, request)
            procedures.append(submitted.procedure)
        return procedures


def _answer(verdict: SilenceVerdict, procedures: Sequence[str] = ()) -> SilenceAnswer:
    return SilenceAnswer(verdict=verdict.value, procedure_ids=list(procedures))


def _wrong(node_id: str, request: SilenceReport) -> Iterator[FieldError]:
    yield from wrong_node(node_id, request.node_id)
    if not is_node_id(request.leader):
        yield no_node_id("/leader")
    for position, region_id in enumerate(request.region_id):
        if not is_region_id(region_id):
            yield no_region_id(f"/region_id/{position}")
