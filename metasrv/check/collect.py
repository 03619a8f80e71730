"""The shell of `check`: gathers the facts, judges them, and looks twice before it blames a node."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from keys.key import Range
from keys.model.cluster import NodeKey, NodeRecord
from keys.model.tables import RegionRoute, TableInfo
from keys.store.kv import Kv
from keys.store.scan import scan
from metasrv.check.check_input import CheckInput, NodeReport, Observations, ServerReport, read_facts
from metasrv.check.rule import Scope, Violation, judge
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


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check."""

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
    return Checked(facts, judge(RULES, facts))


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
    regions = wanted_by_node(facts)
    inspecting = asyncio.Semaphore(INSPECTED_AT_ONCE)

    async def look_at(node: NodeRecord) -> None:
        """Asks the node first, then reads its files: these hold at least what it had acknowledged
        when asked."""
        try:
            reports[node.node_id] = await eyes.report(node)
        except Unavailable as error:
            unseen[f"node {node.node_id}"] = f"not asked: {error}"
        try:
            request = InspectRequest(deep=deep, regions=tuple(regions.get(node.node_id, ())))
            async with inspecting:
                inspected = await eyes.inspect(node, request)
        except Unavailable as error:
            unseen[f"files of {node.node_id}"] = f"not read: {error}"
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


def wanted_by_node(facts: CheckInput) -> Mapping[str, Sequence[WantedRegion]]:
    """The regions that each node leads, or kept of dropped tables, and how their keys are made."""
    infos = facts.infos()
    regions: list[tuple[TableInfo | None, RegionRoute]] = [
        (infos.get(route.table_id), region) for route, region in facts.settled()
    ]
    regions += [(gone.info if gone else None, region) for gone, region in facts.kept()]
    by_node = defaultdict[str, list[WantedRegion]](list)
    for info, region in regions:
        by_node[region.leader].append(
            WantedRegion(
                region_id=region.region_id,
                root=region.root,
                key=key_shape(info, region.number) if info else None,
            )
        )
    return by_node


def key_shape(info: TableInfo, number: int) -> KeyShape | None:
    """None: the table's columns do not make a key, which another rule says."""
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
