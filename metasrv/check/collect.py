"""The shell of `check`: gathers the facts, judges them, and looks twice before it blames a node."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

from keys.key import Range
from keys.model.cluster import NodeKey, NodeRecord
from keys.model.removed import RemovedTableInfoKey
from keys.model.tables import CopyRole, TableInfo, TableInfoKey
from keys.store.kv import Kv
from keys.store.scan import scan
from metasrv.check.check_input import (
    CheckInput,
    NodeReport,
    Observations,
    ServerReport,
    read_facts,
    reason_of,
)
from metasrv.check.rule import Scope, Violation, violations_of
from metasrv.check.rules import RULES
from metasrv_base.clock import Clock
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.inspect import (
    InspectedRoot,
    Inspection,
    InspectRequest,
    KeyShape,
    WantedRegion,
)

STORE_DEADLINE_MS = 10_000  # of one page
SECOND_LOOK_MS = 5_000  # after the first: two heartbeats, in which a node is told what to do
ASKED_AT_ONCE = 32  # nodes; one that is silent takes the whole deadline
INSPECTED_AT_ONCE = 4  # nodes; each inspector is a process that reads as fast as the disk gives
EVERYTHING = Range(b"", b"\0")


class Inspector(Protocol):
    """Reads nodes, their files and servers. Raises Unavailable for one that cannot be read."""

    async def report(self, node: NodeRecord) -> NodeReport: ...

    async def inspect(self, node: NodeRecord, request: InspectRequest) -> Inspection:
        """Returns the files under the node's root. Raises Unavailable if it is on another host."""
        ...

    async def servers(self) -> Mapping[str, ServerReport | str]:
        """Returns the report of each known metasrv, or the reason why it has none."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Checked:
    """The result of a check. Its repr is as short as that of CheckInput."""

    facts: CheckInput
    violations: tuple[Violation, ...]


async def check(kv: Kv, eyes: Inspector, clock: Clock, *, deep: bool = False) -> Checked:
    """Raises Unavailable where there is nothing to look at, or the store does not answer."""
    first = await _look(kv, eyes, deep=deep)
    if not any(violation.is_blame for violation in first.violations):
        return first
    blamed = first.violations
    del first  # the facts of both looks at once would be twice the memory
    await clock.sleep_ms(SECOND_LOOK_MS)
    second = await _look(kv, eyes, deep=deep)
    return Checked(second.facts, confirmed(blamed, second.violations))


async def _look(kv: Kv, eyes: Inspector, *, deep: bool) -> Checked:
    facts = await collect(kv, eyes, deep=deep)
    return Checked(facts, violations_of(RULES, facts))


def confirmed(first: Sequence[Violation], second: Sequence[Violation]) -> tuple[Violation, ...]:
    """Returns the violations of the second look that the store alone proves, and those that the
    first look had too: a node that was on its way then has had the time to arrive."""
    before = {(violation.rule, violation.subject) for violation in first}
    return tuple(
        violation
        for violation in second
        if violation.scope is Scope.STORE or (violation.rule, violation.subject) in before
    )


async def collect(kv: Kv, eyes: Inspector, *, deep: bool) -> CheckInput:
    stored, revision = await scan(kv, EVERYTHING, deadline_ms=STORE_DEADLINE_MS)
    if not stored:
        raise Unavailable(what="cluster", reason="there is not one key under this prefix")
    facts = read_facts(stored, revision)
    return facts.with_world(await _world(facts, eyes, deep))


async def _world(facts: CheckInput, eyes: Inspector, deep: bool) -> Observations:
    reports: dict[str, NodeReport] = {}
    roots: dict[str, InspectedRoot] = {}
    folders: dict[str, tuple[str, ...]] = {}
    unseen: dict[str, str] = {}
    regions = regions_by_node(facts)
    inspecting = asyncio.Semaphore(INSPECTED_AT_ONCE)

    async def look_at(node: NodeRecord) -> None:
        """Asks the node first, then reads its files: these hold at least what it had acknowledged
        when asked."""
        try:
            reports[node.node_id] = await eyes.report(node)
        except Unavailable as error:
            unseen[f"node {node.node_id}"] = f"not asked: {reason_of(error)}"
        try:
            async with inspecting:  # no more requests are held than inspectors run
                request = inspect_request(facts, regions.get(node.node_id, ()), deep=deep)
                inspected = await eyes.inspect(node, request)
        except Unavailable as error:
            unseen[f"files of {node.node_id}"] = f"not read: {reason_of(error)}"
        else:
            roots.update({root.root: root for root in inspected.regions})
            folders[node.node_id] = tuple(inspected.folders)

    looks = [partial(look_at, node) for node in facts.of(NodeKey).values()]
    await fan_out(looks, at_once=ASKED_AT_ONCE)
    answers = await eyes.servers()
    return Observations(
        reports=reports,
        roots=roots,
        folders=folders,
        servers={
            url: answer for url, answer in answers.items() if isinstance(answer, ServerReport)
        },
        unseen=unseen | {url: answer for url, answer in answers.items() if isinstance(answer, str)},
    )


class RegionToInspect(NamedTuple):
    """A region whose files are to be read, without its table: there may be a million."""

    table_id: int
    is_dropped: bool
    number: int
    region_id: str
    root: str


def regions_by_node(facts: CheckInput) -> Mapping[str, Sequence[RegionToInspect]]:
    """The regions that each node leads or has a copy of, those of dropped tables too. A learner may
    have no files yet."""
    by_node = defaultdict[str, list[RegionToInspect]](list)
    living = ((route.table_id, False, region) for route, region in facts.settled())
    dropped = ((table_id, True, region) for table_id, region in facts.kept())
    for table_id, is_dropped, region in chain(living, dropped):
        in_sync = [
            (copy.node, copy.root) for copy in region.copies if copy.role is CopyRole.IN_SYNC
        ]
        for node, root in ((region.leader, region.root), *in_sync):
            by_node[node].append(
                RegionToInspect(table_id, is_dropped, region.number, region.region_id, root)
            )
    return by_node


def inspect_request(
    facts: CheckInput, regions: Iterable[RegionToInspect], *, deep: bool
) -> InspectRequest:
    """The request to the inspector of one node, with how the keys of its regions are made. Regions
    whose keys are made alike share the shape."""
    shapes, to_inspect = dict[str, KeyShape](), list[WantedRegion]()
    for region in regions:
        info = _info_of(facts, region)
        shape = None if info is None else key_shape(info, region.number)
        if shape is not None:
            shape = shapes.setdefault(shape.model_dump_json(), shape)
        to_inspect.append(WantedRegion(region_id=region.region_id, root=region.root, key=shape))
    return InspectRequest(deep=deep, regions=tuple(to_inspect))


def _info_of(facts: CheckInput, region: RegionToInspect) -> TableInfo | None:
    if not region.is_dropped:
        return facts.get(TableInfoKey(region.table_id))
    gone = facts.get(RemovedTableInfoKey(region.table_id))
    return None if gone is None else gone.info


def key_shape(info: TableInfo, number: int) -> KeyShape | None:
    """Returns the shape of a region's keys; None if the table's columns do not make a key, which
    another rule reports."""
    types = {column.id: column.type for column in info.columns}
    key = info.primary_key
    if not set(key) <= types.keys() or not set(info.partition.columns) <= set(key):
        return None
    return KeyShape(
        types=tuple(types[column] for column in key),
        partition_at=tuple(key.index(column) for column in info.partition.columns),
        rule=info.partition,
        number=number,
    )
