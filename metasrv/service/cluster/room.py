"""Tables of a node whose regions no other node may take: a drain refuses them before it begins, and
so does a failover to nodes that a person named (docs/decisions/0282). Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from immutables import Map

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions
from keys.model.placing.placements import DEFAULT_PLACEMENT_ID, DEFAULT_PROFILE, PlacementInfo
from metasrv_base.engines import is_volatile
from metasrv_base.errors import Conflict
from procedures.ports import NodeView
from procedures.steps.placing import why_not

TOLD_MAX = 3
"""Placements that a refusal names, each by one of its tables."""
ALONE = "there is no other node"
LOOKED_AT_MAX = 256
"""Tables of a placement that are decoded to find one that is not being dropped. A schema that is
being dropped may hold more: the drain is then accepted, and waits for the others."""


@dataclass(frozen=True, slots=True)
class Room:
    """The nodes that may take the regions of one node."""

    views: tuple[NodeView, ...]
    source: str
    targets: Collection[str] = ()
    """Nodes that a person named; empty: any but the source."""

    def refusals(self, placement: PlacementInfo, engine: str) -> Mapping[str, str] | None:
        """Returns why each node that is asked for takes no region; None: one of them does."""
        reasons = dict[str, str]()
        for view in self.views:
            if view.node_id == self.source or (self.targets and view.node_id not in self.targets):
                continue
            reason = why_not(view, (), engine, placement.node_filter)
            if reason is None:
                return None
            reasons[view.node_id] = reason
        return reasons

    @property
    def keeps_volatile(self) -> bool:
        """Whether tables of a volatile engine stay where they are: the source lives."""
        return any(view.alive for view in self.views if view.node_id == self.source)


@dataclass(frozen=True, slots=True)
class Stuck:
    """A table that would stay on the node, and the reason of every other node."""

    table: CatalogTable
    placement: PlacementInfo
    reasons: Mapping[str, str]


def must_take_all(room: Room, catalog: Catalog) -> None:
    """Raises Conflict("node-not-eligible") with tables that the source leads regions of and that
    none of the nodes may take."""
    _refuse(islice(_stuck(room, catalog), TOLD_MAX))


def must_take(room: Room, catalog: Catalog, tables: Iterable[CatalogTable]) -> None:
    """As `must_take_all`, of these tables."""
    stuck = list[Stuck]()
    for table in tables:
        placement = catalog.placing.placement_of(table.info)
        reasons = room.refusals(placement, table.info.engine)
        if reasons is not None:
            stuck.append(Stuck(table, placement, reasons))
    _refuse(stuck[:TOLD_MAX])


def _refuse(tables: Iterable[Stuck]) -> None:
    stuck = tuple(tables)
    if not stuck:
        return
    said = [
        f"table {each.table.info.full_name} of placement {each.placement.name}: "
        + ("; ".join(f"{n} is {reason}" for n, reason in each.reasons.items()) or ALONE)
        for each in stuck
    ]
    raise Conflict(
        "node-not-eligible",
        reason=". ".join(said),
        tables=[each.table.info.full_name for each in stuck],
        placements=[each.placement.name for each in stuck],
        reasons=dict(stuck[0].reasons),
    )


def _stuck(room: Room, catalog: Catalog) -> Iterator[Stuck]:
    """One table for each placement that has some. Tables are looked up only where no node may take
    regions of a placement: at most one look-up for each use of a placement."""
    on_node: Map[int, HeldRegions] = catalog.nodes.get(room.source, Map())
    for placement in {DEFAULT_PLACEMENT_ID: catalog.placing.default, **_by_id(catalog)}.values():
        closed = _closed(room, placement)
        if not closed:
            continue
        candidates = (
            number
            for number, profile in _tables_of(catalog, placement.placement_id, on_node)
            if profile in closed and any(region.is_leader for region in on_node[number])
        )
        for number in islice(candidates, LOOKED_AT_MAX):
            table = catalog.tables[number]
            if catalog.shows(table):
                reasons = closed[_profile_of(table)]
                yield Stuck(table, placement, reasons)
                break


def _by_id(catalog: Catalog) -> dict[int, PlacementInfo]:
    return {each.placement_id: each for each in catalog.placing.placements.values()}


def _closed(room: Room, placement: PlacementInfo) -> dict[str, Mapping[str, str]]:
    """Storage profiles of the placement whose regions no node may take -> the reasons."""
    closed = dict[str, Mapping[str, str]]()
    for profile in placement.storage_profiles:
        if is_volatile(profile.engine) and room.keeps_volatile:
            continue
        reasons = room.refusals(placement, profile.engine)
        if reasons is not None:
            closed[profile.name] = reasons
    return closed


def _tables_of(
    catalog: Catalog, placement_id: int, on_node: Map[int, HeldRegions]
) -> Iterator[tuple[int, str]]:
    """Ids of the tables of a placement that are on the node, and their storage profiles."""
    used = catalog.placing.placed_in(placement_id)
    if placement_id != DEFAULT_PLACEMENT_ID:
        yield from ((number, used[number]) for number in _in_both(used, on_node))
        return
    elsewhere = {
        number
        for other, placed in catalog.placing.placed.items()
        if other != DEFAULT_PLACEMENT_ID
        for number in _in_both(placed, on_node)
    }
    for number in on_node:
        if number not in elsewhere:
            yield number, used.get(number, DEFAULT_PROFILE)


def _in_both(placed: Map[int, str], on_node: Map[int, HeldRegions]) -> Iterator[int]:
    if len(placed) < len(on_node):
        return (number for number in placed if number in on_node)
    return (number for number in on_node if number in placed)


def _profile_of(table: CatalogTable) -> str:
    return table.info.storage_profile or DEFAULT_PROFILE
