"""Folders of a page of a node's inventory, judged against the catalog of the leader.

The order matters (docs/decisions/0400): the node has listed its folders, then locks are looked at,
then the stored version is read. A procedure judges those that are to go again.
"""

from dataclasses import dataclass, replace

from keys.commit.txn import snapshot
from keys.model.cluster import ClusterKey
from keys.model.log import CatalogVersionKey
from metasrv.leadership.term import Term
from metasrv_base.errors import Conflict
from metasrv_base.wire.model import INT64_END
from metasrv_base.wire.node.adoption import Inventory, QuarantinedRoot
from procedures.steps.orphans.judging import (
    Evidence,
    Judgement,
    RegionFolder,
    judgements,
    unread_roots,
)


@dataclass(frozen=True, slots=True)
class HeldFolder:
    """A folder in quarantine, judged as if it were where it was."""

    held: QuarantinedRoot
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class SurveyedPage:
    """A page of a node's folders."""

    page: Inventory
    catalog_version: int
    folders: tuple[Judgement, ...]
    held: tuple[HeldFolder, ...]

    @property
    def has_quarantine(self) -> bool:
        """Whether the node knows of quarantine at all."""
        return self.page.quarantined is not None


async def surveyed(term: Term, node_id: str, first: int, now_ms: int) -> SurveyedPage:
    """The page that begins with the region *first*. *now_ms*: wall clock.

    Raises NotFound, as the node answers, and Conflict `wrong-cluster` if another node does.
    """
    record = term.nodes.node(node_id).node
    assert term.adopter is not None
    page = await term.adopter.inventory(record.address, first, INT64_END - 1)
    if page.node_id != node_id:
        reason = f"at {record.address} is node {page.node_id}, not {node_id}"
        raise Conflict("wrong-cluster", node_id=node_id, reason=reason)
    folders = [RegionFolder.of(root) for root in page.roots]
    held = [*(page.quarantined or ())]
    former = [RegionFolder.of_quarantined(item.folder) for item in held]
    every = (*folders, *former)
    tables = {table for folder in every if (table := folder.table_id) is not None}
    busy = {table for table in tables if term.nodes.is_busy(table)}
    version, cluster = CatalogVersionKey(), ClusterKey()
    read = await snapshot(term.ports.kv, version, cluster, deadline_ms=term.ports.deadline_ms)
    catalog = term.nodes.follower.catalog
    evidence = Evidence(
        version=catalog.version,
        route=lambda table: None if (entry := catalog.tables.get(table)) is None else entry.route,
        is_busy=busy.__contains__,
        seen_at=read.must(version).version,
        borrowed=frozenset(borrowed for root in page.roots for borrowed in root.borrows),
        unread=unread_roots(page),
        is_restored=read.must(cluster).restored is not None,
        now_ms=now_ms,
        grace_ms=term.settings.values.orphan_grace_ms,
    )
    ageless = replace(evidence, grace_ms=0)
    return SurveyedPage(
        page,
        catalog.version,
        tuple(judgements(folders, evidence)),
        tuple(map(HeldFolder, held, judgements(former, ageless))),
    )
