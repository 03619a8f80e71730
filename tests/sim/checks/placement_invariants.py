"""No region goes to a node that its table's placement excludes, or that its procedure was not asked
to use.

A procedure chooses by the filter that its leader has applied when it chooses, and by labels of
nodes that the leader knows then (docs/decisions/0258). Seen from the store that moment is between
the last write of the procedure's record and the write of the route: the choice is right if some
filter and some labels of that time allow it.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keys.model.cluster import DATANODE, LeaderRecord, NodeKey, NodeRecord
from keys.model.log import CatalogUpdate, CatalogUpdateKey, RouteChanged, TableCreated
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT_ID,
    NodeFilter,
    PlacementInfo,
    PlacementKey,
)
from keys.model.records import ProcedureKey, ProcedureRecord
from keys.model.tables import RegionRoute, TableInfo, TableInfoKey, TableRoute, TableRouteKey
from keys.store.kv import Watched
from keys.store.memory import MemoryKv
from keys.value import decode
from tests.sim.cluster.servers import Metasrv
from tests.sim.cluster.store import SEAT

CREATES_JUDGED_S = 20.0
"""A create chooses before its record is written, within this time."""
STRICT = "a node chosen under one filter that excludes another node"
TARGETED = "a node chosen among the targets of a procedure"
BY_ENGINE = "a node chosen for an engine that another node lacks"


class Stored(NamedTuple):
    """A value as it was written at a revision."""

    revision: int
    value: Any


class Moment(NamedTuple):
    """The oldest facts by which a choice that begins now is made."""

    at_s: float
    catalog: int
    """The revision up to which the leader has applied the catalog."""
    revision: int
    nodes: tuple[NodeRecord, ...]
    """As the leader knows them."""


@dataclass
class FilterGhost:
    """Judges every revision when it is written (StoreGhost.listeners)."""

    kv: MemoryKv
    servers: Sequence[Metasrv]
    sometimes: Counter[str]
    wrong: Callable[[str], None]
    now_s: Callable[[], float]
    _placements: dict[int, list[Stored]] = field(default_factory=dict)
    _nodes: dict[str, list[Stored]] = field(default_factory=dict)
    _versions: list[int] = field(default_factory=lambda: [0])
    """The revision of every version of the catalog, by its number."""
    _infos: dict[int, TableInfo] = field(default_factory=dict)
    _routes: dict[int, TableRoute] = field(default_factory=dict)
    """Also those of tables that were dropped."""
    _records: dict[str, ProcedureRecord] = field(default_factory=dict)
    _since: dict[str, Moment] = field(default_factory=dict)
    """Procedure -> the moment of the last write of its record."""
    _moments: deque[Moment] = field(default_factory=deque)

    def written(self, entry: Watched) -> None:
        before = self._moment(entry.revision - 1)
        values = [(event.key, _decoded(event.key, event.value)) for event in entry.events]
        makers = dict[int, str | None]()
        for _, value in values:
            self._note(entry.revision, value, makers)
        for _, value in values:
            if isinstance(value, TableRoute):
                self._judge_route(entry.revision, value, makers.get(value.table_id))
                self._routes[value.table_id] = value
        for key, value in values:
            if isinstance(value, ProcedureRecord):
                procedure = ProcedureKey.parse(key).procedure
                if procedure not in self._records:
                    self._judge_create(entry.revision, value)
                    self._judge_move(value)
                self._records[procedure], self._since[procedure] = value, before
        self._moments.append(before)
        while self._moments[0].at_s < before.at_s - 2 * CREATES_JUDGED_S:
            self._moments.popleft()

    def _note(self, revision: int, value: Any, makers: dict[int, str | None]) -> None:
        """*makers*: the procedure that changes the route of a table, by table."""
        match value:
            case PlacementInfo() as info:
                known = self._placements.setdefault(info.placement_id, [])
                known.append(Stored(revision, info.node_filter))
            case NodeRecord() as node:
                self._nodes.setdefault(node.node_id, []).append(Stored(revision, node))
            case CatalogUpdate() as update:
                makers |= dict.fromkeys(_routed(update), update.procedure)
                self._versions.append(revision)
            case TableInfo() as table:
                self._infos[table.table_id] = table

    def _moment(self, revision: int) -> Moment:
        """Returns what the server in the seat knows. One that is elected later applies all that was
        written before its election, and reads the nodes then."""
        seat, catalog, nodes = self.kv._store.get(SEAT), revision, tuple[NodeRecord, ...]()
        leader = None if seat is None else decode(LeaderRecord, seat.value, key=SEAT.decode())
        for server in self.servers:
            if leader is None or leader.server != server.name or not server.is_up:
                continue
            if server.state is not None and server.state.term is not None:
                version = server.state.follower.catalog.version
                catalog = min(revision, self._versions[min(version, len(self._versions) - 1)])
                nodes = server.state.term.nodes.registered()
        return Moment(self.now_s(), catalog, revision, nodes)

    # ---- judged

    def _judge_route(self, revision: int, route: TableRoute, procedure: str | None) -> None:
        """A new table is judged when its create is submitted. One that is undropped keeps its
        nodes, and so does one that is truncated, where they live. A copy is judged when it is
        added, and not when it comes to lead."""
        old, record = self._routes.get(route.table_id), self._records.get(procedure or "")
        if old is None:
            return
        led = {region.region_id: region for region in old.region_routes}
        for region in route.region_routes:
            before = led[region.region_id]
            is_moved = region.leader != before.leader
            for copy in region.copies if record is not None else ():
                if copy.root not in before.roots:
                    since = self._since[procedure or ""]
                    self._judge(self._infos[route.table_id], region, copy.node, since, revision)
            if is_moved and region.root in before.roots:
                continue
            if region.epoch == before.epoch or record is None or procedure is None:
                if is_moved:
                    self.wrong(f"filter: nobody moved {region.region_id} to {region.leader}")
                continue
            if is_moved or record.kind == "failover_table":
                info, since = self._infos[route.table_id], self._since[procedure]
                self._judge(info, region, region.leader, since, revision)
                self._judge_target(region.region_id, region.leader, record)

    def _judge_create(self, revision: int, record: ProcedureRecord) -> None:
        if record.kind != "create_table":
            return
        info = TableInfo.model_validate(record.state["info"])
        route = TableRoute.model_validate(record.state["route"])
        from_s = self.now_s() - CREATES_JUDGED_S
        since = next((one for one in self._moments if one.at_s >= from_s), None)
        if since is not None:
            for region in route.region_routes:
                self._judge(info, region, region.leader, since, revision)

    def _judge_move(self, record: ProcedureRecord) -> None:
        """A drain chooses the node of each copy that it adds, and none where another copy is in
        sync already."""
        drain = self._records.get(record.parent or "")
        if record.kind != "move_copy" or drain is None:
            return
        region_id, node = record.state["region_id"], record.state["to_node"]
        routes = self._routes[record.state["table_id"]].region_routes
        if not any(each.region_id == region_id and node in each.in_sync for each in routes):
            self._judge_target(region_id, node, drain)

    def _judge_target(self, region_id: str, node: str, record: ProcedureRecord) -> None:
        targets = record.state.get("targets") or ()
        if targets and node not in targets:
            self.wrong(f"filter: {region_id} went to {node}, not to {targets}")
        self.sometimes[TARGETED] += bool(targets)

    def _judge(
        self, info: TableInfo, region: RegionRoute, node_id: str, since: Moment, revision: int
    ) -> None:
        """*since*: before the choice; *revision*: after it."""
        placed = self._placements.get(info.placement_id or DEFAULT_PLACEMENT_ID, ())
        filters = list(_standing(placed, since.catalog, revision)) or [NodeFilter()]
        known = [node for node in since.nodes if node.node_id == node_id]
        nodes = [*known, *_standing(self._nodes.get(node_id, ()), since.revision, revision)]
        if not any(_allows(one, node) for one in filters for node in nodes):
            where = [(node.zone, node.labels) for node in nodes]
            self.wrong(
                f"filter: region {region.region_id} of {info.name} went to {node_id} {where},"
                f" which {filters} excludes"
            )
        if not any(info.engine in node.engines for node in nodes):
            self.wrong(f"filter: {node_id} lacks {info.engine} of {info.name}")
        others = [known[-1].value for known in self._nodes.values()]
        self.sometimes[BY_ENGINE] += any(info.engine not in node.engines for node in others)
        is_excluding = any(not _allows(filters[0], node) for node in others)
        self.sometimes[STRICT] += len(filters) == 1 and is_excluding


FAMILIES = (
    (PlacementKey.under(), PlacementInfo),
    (NodeKey.under(DATANODE), NodeRecord),
    (CatalogUpdateKey.under(), CatalogUpdate),
    (TableInfoKey.under(), TableInfo),
    (TableRouteKey.under(), TableRoute),
    (ProcedureKey.under(), ProcedureRecord),
)


def _decoded(key: bytes, value: bytes | None) -> Any:
    """None: deleted, or of no interest."""
    for (start, end), model in FAMILIES if value is not None else ():
        if start <= key < end:
            return decode(model, value or b"", key=key.decode())
    return None


def _routed(update: CatalogUpdate) -> Iterator[int]:
    for entry in update.entries:
        if isinstance(entry, RouteChanged):
            yield entry.table_id
        elif isinstance(entry, TableCreated):
            yield entry.info.table_id


def _standing(written: Iterable[Stored], since: int, until: int) -> Iterator[Any]:
    """The values that stood at some moment from *since* up to, and without, *until*."""
    written = list(written)
    for number, one in enumerate(written):
        over = written[number + 1].revision if number + 1 < len(written) else until
        if one.revision < until and over > since:
            yield one.value


def _allows(wanted: NodeFilter, node: NodeRecord) -> bool:
    """Judges without the product's own function."""
    if wanted.zones and node.zone not in wanted.zones:
        return False
    return all(node.labels.get(one.label, "") in one.values for one in wanted.labels)
