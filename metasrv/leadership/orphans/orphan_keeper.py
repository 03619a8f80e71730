"""Puts folders that no route names into quarantine, and deletes them there: the loop of one term.

It chooses; a procedure proves (procedures/kinds/orphans/remove_orphans.py). Folders that were
chosen before and are still there come after all others of their page: none holds the others up.
Nothing is chosen during the grace after an election or in maintenance, nor on a node that has just
come back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import structlog

from keys.model.records import ClientRequirements as Client
from metasrv.leadership.orphans.folder_survey import SurveyedPage, surveyed
from metasrv.leadership.term import Term
from metasrv.nodes.status import GONE, NodeStatus
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from metasrv_base.ids import Ids
from procedures.engine.submit import SubmitRequest
from procedures.kinds.orphans.remove_orphans import (
    FOLDERS_MAX,
    REMOVE_ORPHANS,
    OrphanFolder,
    RemoveOrphans,
)

TICK_MS = 5_000
EVERY_MS = 300_000
"""The interval at which each page of a node is looked at; or the grace or the retention, if one of
them is shorter."""
NODES_MAX = 4
"""Nodes that are asked at one tick, for one page each."""

log = structlog.get_logger()


FolderKey = tuple[str, int | None]
"""Root of a folder, and the time at which it came into quarantine."""


@dataclass(slots=True)
class _NodeLook:
    """The progress through the folders of one node."""

    due_ms: int = 0
    """Monotonic."""
    first: int = 0
    """The region with which the next page begins."""
    folders: int = 0
    size_bytes: int = 0
    """Folders in quarantine on the pages of this round, and their bytes."""
    tried: dict[FolderKey, int] = field(default_factory=dict)
    """The number of the last choice of each folder that is there still."""
    listed: set[FolderKey] = field(default_factory=set)
    """Folders that might have been chosen on the pages of this round."""
    choices: int = 0


@dataclass(slots=True)
class OrphanKeeper:
    term: Term
    clock: Clock
    ids: Ids
    _looks: dict[str, _NodeLook] = field(default_factory=dict)

    async def run(self) -> None:
        """Begins once every record has been read: whatever is under way is known then."""
        await self.term.ready.wait()
        while True:
            await self.clock.sleep_ms(TICK_MS)
            await self.look()

    async def look(self) -> None:
        """Looks at the nodes that are due, the longest due first."""
        term, now = self.term, self.clock.mono_ms()
        if now < term.nodes.leases.quiet_until_ms or term.settings.maintenance is not None:
            return
        if not term.settings.values.removes_orphans:
            return
        nodes = [status.node.node_id for status in term.nodes.statuses() if self._is_known(status)]
        self._looks = {node: self._looks.get(node, _NodeLook()) for node in nodes}
        self.term.quarantined.keep(nodes)
        removing = {*_removing(term)}
        due = [
            (look.due_ms, node)
            for node, look in self._looks.items()
            if look.due_ms <= now and node not in removing
        ]
        for _, node in sorted(due)[:NODES_MAX]:
            await self._look_at(node, self._looks[node])

    def _is_known(self, status: NodeStatus) -> bool:
        """Whether a node is heard, has been back for the grace time, and has nothing that waits for
        an operator."""
        node, grace_ms = status.node, self.term.settings.values.orphan_grace_ms
        if status.state in GONE or status.heard_ms_ago is None:
            return False
        if node.returned is not None or node.restored_from is not None:
            return False
        returned_ms = self.term.nodes.entry(node.node_id).returns.last_ms
        is_back = returned_ms is None or self.clock.mono_ms() - returned_ms >= grace_ms
        return is_back and self.clock.wall_ms() - node.registered_at_ms >= grace_ms

    async def _look_at(self, node: str, look: _NodeLook) -> None:
        tuned = self.term.settings.values
        look.due_ms = self.clock.mono_ms() + min(
            EVERY_MS, tuned.orphan_grace_ms, tuned.orphan_retention_ms
        )
        now_ms = self.clock.wall_ms()
        try:
            survey = await surveyed(self.term, node, look.first, now_ms)
        except MetaError as error:
            log.info("orphans_not_surveyed", node=node, error=error.code)
            return
        if not survey.has_quarantine:
            return
        due = (*_due(survey, now_ms - tuned.orphan_retention_ms), *_orphans(survey))
        look.listed.update(map(_key, due))
        if chosen := _chosen(due, look.tried):
            deletes = chosen[0].at_ms is not None
            grace_ms = tuned.orphan_retention_ms if deletes else tuned.orphan_grace_ms
            state = RemoveOrphans(node=node, deletes=deletes, folders=chosen, grace_ms=grace_ms)
            await self._submit(state)
            look.choices += 1
            look.tried |= dict.fromkeys(map(_key, chosen), look.choices)
        self._turn_page(node, look, survey)

    def _turn_page(self, node: str, look: _NodeLook, survey: SurveyedPage) -> None:
        """Goes on with the next page, at the next tick. What was left on this one is found in the
        next round."""
        look.folders += len(survey.held)
        look.size_bytes += sum(folder.held.bytes for folder in survey.held)
        if survey.page.next is not None:
            look.first, look.due_ms = int(survey.page.next), 0
            return
        self.term.quarantined.take(node, look.folders, look.size_bytes)
        look.tried = {key: number for key, number in look.tried.items() if key in look.listed}
        look.listed.clear()
        look.first = look.folders = look.size_bytes = 0

    async def _submit(self, state: RemoveOrphans) -> None:
        reason = "their retention is over" if state.deletes else "no route names them"
        statement = {"automatic": REMOVE_ORPHANS.name, "reason": reason}
        client = Client(submitted_by="metasrv", request_id="", statement=statement)
        request = SubmitRequest(self.ids.procedure_id(), client, fingerprint="")
        facts = {"node": state.node, "deletes": state.deletes, "folders": len(state.folders)}
        try:
            await self.term.manager.submit(REMOVE_ORPHANS, state, request)
        except MetaError as error:
            log.info("orphan_removal_postponed", error=error.code, **facts)
        else:
            log.info("orphan_removal_started", procedure=request.procedure, **facts)


def _removing(term: Term) -> Iterable[str]:
    """Nodes of which a living procedure removes folders."""
    for _, entry in term.manager.living():
        record = entry.held.record
        if record.kind == REMOVE_ORPHANS.name:
            yield str(record.state["node"])


def _due(survey: SurveyedPage, before_ms: int) -> Iterator[OrphanFolder]:
    """Folders with a proof that came into quarantine at *before_ms* or earlier."""
    for folder in survey.held:
        held = folder.held
        if folder.judgement.orphan is not None and held.at_ms <= before_ms:
            root, region_id = held.folder.root, held.folder.region_id
            yield OrphanFolder(root=root, region_id=region_id, at_ms=held.at_ms)


def _orphans(survey: SurveyedPage) -> Iterator[OrphanFolder]:
    for judgement in survey.folders:
        if judgement.orphan is not None:
            folder = judgement.folder
            yield OrphanFolder(root=folder.root, region_id=str(folder.region_id))


def _key(folder: OrphanFolder) -> FolderKey:
    return folder.root, folder.at_ms


def _chosen(
    due: Iterable[OrphanFolder], tried: Mapping[FolderKey, int]
) -> tuple[OrphanFolder, ...]:
    """The folders of one procedure: FOLDERS_MAX at most, of a region no more than one, all in
    quarantine or none. Those that were never chosen come first, then those whose last choice was
    the longest ago. Of folders alike *due* has those first that are to come first."""
    ranked = sorted(due, key=lambda folder: tried.get(_key(folder), 0))
    first: dict[str, OrphanFolder] = {}
    for folder in ranked:
        if (folder.at_ms is None) == (ranked[0].at_ms is None):
            first.setdefault(folder.region_id, folder)
        if len(first) == FOLDERS_MAX:
            break
    return tuple(first.values())
