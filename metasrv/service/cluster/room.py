"""Tables of a node whose regions no other node may take: a drain refuses them before it begins, and
so does a failover to nodes that a person named (docs/decisions/0282). Pure.

A node may have regions of a million tables in a thousand placements: those are looked through by
turns.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from immutables import Map

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions
from keys.model.placing.placements import DEFAULT_PLACEMENT_ID, DEFAULT_PROFILE, PlacementInfo
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.engines import is_volatile
from metasrv_base.errors import Conflict
from procedures.kinds.moves.leaving_copies import leaving, member_left
from procedures.ports import NodeView
from procedures.steps.placing import why_not

TOLD_MAX = 3
"""Placements that a refusal names, each by one of its tables."""
ALONE = "there is no other node"
LOOKED_AT_MAX = 256
"""Tables of a placement that are decoded to find one that is not being dropped. A schema that is
being dropped may hold more: the drain is then accepted, and waits for the others."""
DECODED_IN_TURN = 16  # tables, each of another part of a snapshot: some 1 ms


@dataclass(frozen=True, slots=True)
class Room:
    """The nodes that may take the regions of one node."""

    views: tuple[NodeView, ...]
    source: str
    targets: Collection[str] = ()
    """Nodes that a person named; empty: any but the source."""

    def refusals(
        self, placement: PlacementInfo, engine: str, holding: Collection[str] = ()
    ) -> Mapping[str, str] | None:
        """Returns why each node that is asked for takes no region; None: one of them does.
        *holding*: nodes that have a copy of the region."""
        reasons = dict[str, str]()
        for view in self.views:
            if view.node_id == self.source or (self.targets and view.node_id not in self.targets):
                continue
            reason = why_not(view, (), engine, placement.node_filter)
            if view.node_id in holding:
                reason = "holding a copy already"
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


def must_take_all(room: Room, catalog: Catalog) -> Turns[None]:
    """Raises Conflict("node-not-eligible") with tables that the source leads regions of and that
    none of the nodes may take."""
    _refuse((yield from _stuck(room, catalog)))


def must_take(room: Room, catalog: Catalog, tables: Iterable[CatalogTable]) -> None:
    """Checks *tables* as `must_take_all` checks all tables."""
    stuck_tables = list[Stuck]()
    for table in tables:
        placement = catalog.placing.placement_of(table.info)
        reasons = room.refusals(placement, table.info.engine)
        if reasons is not None:
            stuck_tables.append(Stuck(table, placement, reasons))
    _refuse(stuck_tables[:TOLD_MAX])


def must_take_copies(room: Room, catalog: Catalog, tables: Sequence[int]) -> Turns[None]:
    """Raises Conflict("node-not-eligible") with those of *tables* that have a copy on the source
    which no other node may take: there are too few nodes for their number of copies."""
    stuck_tables = list[Stuck]()
    for number in tables:
        yield
        for copy in leaving(catalog, room.source, (number,)):
            if member_left(copy, room.source) is not None:
                continue
            placement = catalog.placing.placement_of(copy.table.info)
            reasons = room.refusals(placement, copy.table.info.engine, copy.region.nodes)
            if reasons is not None:
                stuck_tables.append(Stuck(copy.table, placement, reasons))
                break
        if len(stuck_tables) == TOLD_MAX:
            break
    _refuse(stuck_tables)


def _refuse(stuck_tables: Sequence[Stuck]) -> None:
    if not stuck_tables:
        return
    refusals = [
        f"table {each.table.info.full_name} of placement {each.placement.name}: "
        + ("; ".join(f"{n} is {reason}" for n, reason in each.reasons.items()) or ALONE)
        for each in stuck_tables
    ]
    raise Conflict(
        "node-not-eligible",
        reason=". ".join(refusals),
        tables=[each.table.info.full_name for each in stuck_tables],
        placements=[each.placement.name for each in stuck_tables],
        reasons=dict(stuck_tables[0].reasons),
    )


def _stuck(room: Room, catalog: Catalog) -> Turns[list[Stuck]]:
    """One table for each placement that has some, of as many as are told. Tables are looked up only
    where no node may take regions of a placement: at most one look-up for each use of one."""
    on_node: Map[int, HeldRegions] = catalog.nodes.get(room.source, Map())
    stuck_tables = list[Stuck]()
    for placement in {DEFAULT_PLACEMENT_ID: catalog.placing.default, **_by_id(catalog)}.values():
        yield
        closed = _closed(room, placement)
        if not closed:
            continue
        numbers = yield from _led_in(catalog, placement.placement_id, closed.keys(), on_node)
        table = yield from _first_stuck(catalog, numbers, room.source)
        if table is not None:
            stuck_tables.append(Stuck(table, placement, closed[_profile_of(table)]))
        if len(stuck_tables) == TOLD_MAX:
            break
    return stuck_tables


def _first_stuck(
    catalog: Catalog, numbers: Iterable[int], source: str
) -> Turns[CatalogTable | None]:
    """Returns a table of which *source* leads a region that has no other copy in sync: such a copy
    leads next, and needs no room elsewhere."""
    for some in slices(numbers, DECODED_IN_TURN):
        for number in some:
            table = catalog.tables[number]
            is_stuck = any(
                region.leader == source and len(region.in_sync) == 1
                for region in table.route.region_routes
            )
            if is_stuck and catalog.shows(table):
                return table
        yield
    return None


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


def _led_in(
    catalog: Catalog,
    placement_id: int,
    profiles: AbstractSet[str],
    on_node: Map[int, HeldRegions],
) -> Turns[list[int]]:
    """Returns tables of a placement that use one of its *profiles* and are led by the node, as many
    as are looked at."""
    used, elsewhere = catalog.placing.placed_in(placement_id), frozenset[int]()
    other = None if placement_id != DEFAULT_PLACEMENT_ID else DEFAULT_PROFILE
    if other is not None:
        elsewhere = yield from _placed_elsewhere(catalog, on_node)
    led = list[int]()
    for some in slices(on_node if other is not None else _smaller(used, on_node)):
        led += (
            number
            for number in some
            if used.get(number, other) in profiles
            and number not in elsewhere
            and any(region.is_leader for region in on_node.get(number, ()))
        )
        if len(led) >= LOOKED_AT_MAX:
            break
        yield
    return led[:LOOKED_AT_MAX]


def _placed_elsewhere(catalog: Catalog, on_node: Map[int, HeldRegions]) -> Turns[frozenset[int]]:
    """Returns the tables on the node that are not in the default placement."""
    elsewhere = set[int]()
    for placement_id, placed in catalog.placing.placed.items():
        if placement_id == DEFAULT_PLACEMENT_ID:
            continue
        for some in slices(_smaller(placed, on_node)):
            elsewhere.update(number for number in some if number in placed and number in on_node)
            yield
    return frozenset(elsewhere)


def _smaller(placed: Map[int, str], on_node: Map[int, HeldRegions]) -> Iterable[int]:
    return placed if len(placed) < len(on_node) else on_node


def _profile_of(table: CatalogTable) -> str:
    return table.info.storage_profile or DEFAULT_PROFILE
