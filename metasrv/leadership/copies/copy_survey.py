"""Search for the regions whose copies need a change, without a look at all regions each time.

A table in which nothing is to be done is looked at again when its part of the catalog's index of
nodes changes, or a node that it is on is lost or back.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from keys.catalog.catalog import Catalog
from keys.catalog.tables.heads import HeldRegions
from keys.model.tables import CopyRole
from metasrv.leadership.copies.copy_plan import CopiedRegion, CopyNodes, Need, need_of
from metasrv.nodes.copy_risk import CopyRisk
from metasrv_base.concurrency.turns import Turns, slices
from procedures.steps.placing import NodeRules

ABSENT_MS = 120_000
"""The time for which a living node does not have a learner, from which on it is made anew: a node
that starts opens its regions some at a time."""
LOST_MS = 20_000
"""The same of a learner that its node reports as lost. A disk that cannot be read for a moment is
tried again after 15 s."""
FORGET_LOOKS = 60
"""Looks after which every table is looked at again: placements and numbers of copies change without
a change of the index."""

Holders = dict[str, HeldRegions]
Absent = tuple[str, str]
"""Node and region id of a learner."""
Lacks = Callable[[str, str], int | None]
"""The time for which a living node may lack a region, by id, before its copy is made anew; None: by
its last report it has it."""


@dataclass(frozen=True, slots=True)
class CopySurvey:
    """The result of one look."""

    needs: tuple[Need, ...]
    nodes: CopyNodes
    """The nodes, with the learners of each."""
    risk: CopyRisk


@dataclass(slots=True)
class CopySurveyor:
    """The memory from look to look, of one term."""

    _calm: dict[int, int] = field(default_factory=dict)
    """Table id -> digest of what it was judged by, for tables that need nothing, have no learner
    and are not at risk."""
    _absent: dict[Absent, int] = field(default_factory=dict)
    """Learners that their nodes do not have -> since when, monotonic ms."""
    _looks: int = 0

    def look(
        self, catalog: Catalog, nodes: CopyNodes, lacks: Lacks, now_ms: int
    ) -> Turns[CopySurvey]:
        """Looks at the tables that have copies."""
        self._looks += 1
        if self._looks % FORGET_LOOKS == 0:
            self._calm.clear()
        holders = yield from copied_tables(catalog)
        self._calm = {table: mark for table, mark in self._calm.items() if table in holders}
        needs, learners, absent = list[Need](), Counter[str](), dict[Absent, int]()
        risk = CopyRisk()
        for table_id, held in sorted(holders.items()):
            mark = hash(tuple((node, nodes.is_lost(node), held[node]) for node in sorted(held)))
            if self._calm.get(table_id) == mark:
                continue
            yield
            before = len(needs), learners.total(), risk.counts
            for copied in regions_of(catalog, table_id):
                risk.count(copied.info, copied.region, nodes.is_lost)
                unmade, given_up = list[str](), list[str]()
                for copy in copied.region.copies:
                    if copy.role is not CopyRole.LEARNER:
                        continue
                    learners[copy.node] += 1
                    pair = copy.node, copied.region.region_id
                    if (patience_ms := lacks(*pair)) is not None:
                        absent[pair] = self._absent.get(pair, now_ms)
                        away_ms = now_ms - absent[pair]
                        unmade += [copy.root] if away_ms >= patience_ms else []
                        given_up += [copy.root] if away_ms >= nodes.safe_lost_time_ms else []
                if (need := need_of(copied, nodes, unmade, given_up)) is not None:
                    needs.append(need)
            after = len(needs), learners.total(), risk.counts
            if before == after:
                self._calm[table_id] = mark
        self._absent = absent
        return CopySurvey(tuple(needs), replace(nodes, learners=learners), risk)


def copied_tables(catalog: Catalog) -> Turns[dict[int, Holders]]:
    """The living tables that have, or had, more than one copy of a region, with all their nodes;
    from the index, no table is decoded."""
    tables: dict[int, Holders] = {}
    for node in sorted(catalog.nodes):
        for some in slices(catalog.nodes[node].items()):
            for table_id, regions in some:
                if any(region.copies_version for region in regions):
                    tables.setdefault(table_id, {})[node] = regions
            yield
    return tables


def regions_of(catalog: Catalog, table_id: int) -> Iterator[CopiedRegion]:
    """The regions of a living table."""
    table = catalog.tables.get(table_id)
    if table is None or table.dropped_at_ms is not None or table.info.dropping is not None:
        return
    rules = NodeRules.of(catalog.placing.placement_of(table.info), table.info.engine)
    for region in table.route.region_routes:
        yield CopiedRegion(table.info, region, rules)
