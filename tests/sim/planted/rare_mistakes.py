"""Mistakes that need several faults or much of something, planted for one world at a time."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dataplane.frontend.statements.scanning import Scanning
from dataplane.frontend.statements.scans import IndexScan, OpenScan, Place
from dataplane.region.log.logged_change import PositionedChange
from dataplane.region.log.logged_group import LoggedGroup
from dataplane.region.log.sealed_log import SealedLog
from keys.store.kv import KeyValue
from metasrv.leadership import leadership
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command
from procedures.kinds.failover import failover_plan, failover_table
from procedures.ports import NodeView
from procedures.scheduling import intake
from procedures.scheduling.manager import Manager
from procedures.scheduling.recovery import read_records
from procedures.steps.placing import ANY_RULES, NodeRules, place_in_groups
from tests.crash.enumeration import Patch

_PAGE = Scanning.page
_RESUME = Scanning.resume
_POST = Manager._post
_RECORDS = SealedLog.records
REPLAYED_MAX = 200
"""Statements."""


async def _keeps_its_place(self: Scanning, opened: OpenScan, at: Place, limit: int) -> Any:
    """A frontend that remembers how far a scan by an index has come."""
    page, following = await _PAGE(self, opened, at, limit)
    if following is not None:
        known = self.opened.find(opened.transaction.id)
        if isinstance(known.scan, IndexScan):
            scan = replace(known.scan, first=following.key)
            self.opened.keep(OpenScan(scan, known.transaction))
    return page, following


def _from_there(self: Scanning, token: str) -> tuple[OpenScan, Place]:
    """And goes on from there, whatever the token says: a page whose answer was lost is left out."""
    opened, place = _RESUME(self, token)
    return opened, opened.scan.start if isinstance(opened.scan, IndexScan) else place


async def _told_at_once(self: Manager, entry: ActiveProcedure, command: Command | None) -> Any:
    """A control is answered when it is heard, not when it is stored."""
    if command is None:
        return await _POST(self, entry, command)
    letter = entry.put(command)
    letter.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
    self._wake(entry)
    return entry


async def _never_gone(*_: object) -> bool:
    """A new leader that dies in its turn is waited for."""
    return False


def _any_node(
    nodes: Iterable[NodeView],
    groups: Sequence[Mapping[str, int]],
    excluded: Collection[str] = (),
    rules: NodeRules = ANY_RULES,
    *_: object,
) -> tuple[NodeView, ...]:
    """A failover that prefers any node to a wait."""
    return place_in_groups(nodes, groups, excluded, NodeRules(rules.engine))


async def _first_page(*asked: Any, **bounds: Any) -> AsyncIterator[tuple[KeyValue, ...]]:
    """A new leader takes up the first page of the records that it finds."""
    async for items in read_records(*asked, **bounds):
        yield items
        return


def _not_all(self: SealedLog) -> Iterator[LoggedGroup | PositionedChange]:
    """A replay that ends at a bound, and says nothing."""
    read = 0
    for record in _RECORDS(self):
        yield record
        read += len(record.statements) if isinstance(record, LoggedGroup) else 0
        if read > REPLAYED_MAX:
            return


async def _nothing_left(*_: object, **__: object) -> None:
    """A new leader does not look which keys the one before has left."""


PATCHES: dict[str, Iterable[Patch]] = {
    "a lost page is left out": (
        (Scanning, "page", _keeps_its_place),
        (Scanning, "resume", _from_there),
    ),
    "a control told before it is stored": ((Manager, "_post", _told_at_once),),
    "one page of records recovered": ((intake, "read_records", _first_page),),
    "a replay that ends at a bound": ((SealedLog, "records", _not_all),),
    "a failover ignores the node filter": ((failover_plan, "place_in_groups", _any_node),),
    "keys of a large version are left": ((leadership, "keys_left", _nothing_left),),
    "a new leader is waited for": ((failover_table, "_can_reroute", _never_gone),),
}
"""By name."""
