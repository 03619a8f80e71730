"""The input of rules: every key at one revision, the log folded, the nodes' reports, their files.

Frozen and complete: a rule reads nothing else, so a world that a rule judges can be made in a test.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict

from keys.catalog.catalog import Catalog
from keys.catalog.known import CatalogByKey
from keys.commit.change import copies_of
from keys.commit.copying import overlaid
from keys.commit.txn import Copies
from keys.key import Key
from keys.model.log import CatalogUpdate, CatalogUpdateKey, CatalogVersion, CatalogVersionKey
from keys.model.records import ProcedureKey, ProcedureRecord
from keys.model.removed import RemovedTableRouteKey
from keys.model.snapshot.snapshots import (
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersionKey,
)
from keys.model.staging.parts import LargeUpdateKey
from keys.model.tables import (
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableRoute,
    TableRouteKey,
)
from keys.store.kv import KeyValue
from keys.value import StoredModel
from metasrv.check.stored.stored_item import Item, Values, item_of
from metasrv.check.stored.stored_log import (
    FOLDING,
    Fold,
    RawPart,
    StoredUpdate,
    fold,
    parts_by_batch,
    snapshot_catalog,
)
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import Corrupt, Unavailable
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.inspect import InspectedRoot
from metasrv_base.wire.node.nodes import RegionStat

V = TypeVar("V", bound=StoredModel)


class NodeRegion(BaseModel):
    """One region in a node's answer to `GET /node/v1/regions`; what else it says is not judged."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stat: RegionStat
    root: str


class NodeReport(BaseModel):
    """A node's answer to `GET /node/v1/regions`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    node_id: str
    cluster_id: str | None
    regions: tuple[NodeRegion, ...]


class ServerReport(BaseModel):
    """A metasrv's answer to `GET /v1/cluster`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cluster_id: str | None
    catalog_version: int


def reason_of(error: Unavailable) -> str:
    """Returns what could not be read, and why: `http://127.0.0.1:4001: no answer`."""
    facts = error.facts
    return f"{facts.get('what', 'it')}: {facts.get('reason', error.code)}"


@dataclass(frozen=True, slots=True)
class Observations:
    """The facts learned beside the store. From a node that is missing, since it was not asked or
    did not answer, nothing is concluded."""

    reports: Mapping[str, NodeReport] = field(default_factory=dict)
    """Reports of open regions, by node."""
    roots: Mapping[str, InspectedRoot] = field(default_factory=dict)
    """The content of each root of a region."""
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Every folder of a region under a node's storage root, by node."""
    servers: Mapping[str, ServerReport] = field(default_factory=dict)
    """Reports of metasrvs, by URL."""
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Nodes, roots and servers that could not be read, with the reason."""


@dataclass(frozen=True, slots=True, repr=False)
class CheckInput:
    """Every key and all observations. Its repr is short: `asyncio.run` makes that of what its main
    task returns (through signal.getsignal), which was 35 KB a table."""

    revision: int
    items: tuple[Item, ...]
    by_name: Mapping[str, Item]
    by_type: Mapping[type, Mapping[Any, Item]]
    """Items whose value can be read, by key, for each type of key."""
    fold: Fold
    parts: Mapping[int, Mapping[int, RawPart]] = field(default_factory=dict)
    """Parts of snapshots by version and number, those that no snapshot names too."""
    shared_roots: frozenset[str] = frozenset()
    """Roots that several regions of living tables name."""
    world: Observations = field(default_factory=Observations)

    def of(self, key_type: type[Key[V]]) -> Mapping[Key[V], V]:
        """Every key of a family whose value could be read, in key order."""
        return Values(self.by_type.get(key_type, {}))

    def get(self, key: Key[V]) -> V | None:
        item = self.by_name.get(str(key))
        return None if item is None else cast("V | None", item.value)

    def has(self, key: Key[Any]) -> bool:
        """Whether it is stored, readable or not."""
        return str(key) in self.by_name

    def infos(self) -> Mapping[int, TableInfo]:
        stored = self.by_type.get(TableInfoKey, {})
        return Values({key.table_id: item for key, item in stored.items()})

    def routes(self) -> Mapping[int, TableRoute]:
        stored = self.by_type.get(TableRouteKey, {})
        return Values({key.table_id: item for key, item in stored.items()})

    def records(self) -> dict[str, ProcedureRecord]:
        """Procedures that are not over."""
        values = self.of(ProcedureKey).items()
        return {cast("ProcedureKey", key).procedure: value for key, value in values}

    def log(self) -> Mapping[int, CatalogUpdate]:
        stored = self.by_type.get(CatalogUpdateKey, {})
        return Values({key.version: item for key, item in stored.items()})

    def version(self) -> CatalogVersion | None:
        return self.get(CatalogVersionKey())

    def snapshots(self) -> tuple[SnapshotRef, ...]:
        """The snapshots that are kept, oldest first, as far as the key that names them is read."""
        stored = self.get(SnapshotVersionKey())
        return () if stored is None else stored.kept

    @property
    def floor(self) -> int:
        """The version above which each update is stored."""
        return min((ref.version for ref in self.snapshots()), default=0)

    def snapshot_catalog(self, ref: SnapshotRef) -> Catalog:
        """Raises Corrupt."""
        return snapshot_catalog(ref, self.parts.get(ref.version, {}))

    def busy(self) -> frozenset[int]:
        """Tables that a living procedure may be changing: their nodes may be on the way."""
        held = [lock.key for record in self.records().values() for lock in record.locks]
        for item in self.items:
            if isinstance(item.key, ProcedureKey) and not item.is_readable:
                held += _locks_in(item.raw.value)
        return frozenset(table for key in held if (table := _table_of_lock(key)) is not None)

    def settled(self) -> Iterable[tuple[TableRoute, RegionRoute]]:
        """Regions of living tables that no procedure touches; a root that several name, never. One
        route is decoded at a time."""
        busy = self.busy()
        for route in self.routes().values():
            if route.table_id not in busy:
                for region in route.region_routes:
                    if region.root not in self.shared_roots:
                        yield route, region

    def kept(self) -> Iterable[tuple[int, RegionRoute]]:
        """Regions of dropped tables, which undrop would open again, with the id of the table."""
        busy = self.busy()
        for key, removed in self.of(RemovedTableRouteKey).items():
            table_id = cast("RemovedTableRouteKey", key).table_id
            if table_id not in busy:
                yield from ((table_id, region) for region in removed.route.region_routes)

    def looked_at(self) -> Iterable[tuple[RegionRoute, InspectedRoot]]:
        """Regions whose files were read. Of a lost one it is known that they cannot be."""
        if not self.world.roots:
            return
        for _, region in chain[tuple[object, RegionRoute]](self.settled(), self.kept()):
            if region.state is not RegionState.LOST and region.root in self.world.roots:
                yield region, self.world.roots[region.root]

    def with_world(self, world: Observations) -> "CheckInput":
        return replace(self, world=world)


def read_facts(stored: Iterable[KeyValue], revision: int) -> CheckInput:
    """Decodes *stored*, every key under the prefix as it was at *revision*. Keys of the newest
    version that are still to be written are seen as they will be."""
    raw = tuple(stored)
    facts = _facts(raw, revision)
    left = _left(facts)
    return facts if left is None else _facts(overlaid(raw, *left), revision)


def _facts(raw: tuple[KeyValue, ...], revision: int) -> CheckInput:
    parts = parts_by_batch(raw)
    items = tuple(item_of(stored, parts) for stored in raw)
    by_type: dict[type, dict[Any, Item]] = defaultdict(dict)
    for item in items:
        if item.key is not None and item.is_readable:
            by_type[type(item.key)][item.key] = item
    by_name = {item.name: item for item in items}
    facts = CheckInput(revision, items, by_name, by_type, Fold(None), _parts(items))
    return replace(facts, fold=_fold(facts), shared_roots=_shared_roots(facts))


def _shared_roots(facts: CheckInput) -> frozenset[str]:
    roots, shared = set[str](), set[str]()
    for route in facts.routes().values():
        for region in route.region_routes:
            (shared if region.root in roots else roots).add(region.root)
    return frozenset(shared)


def _left(facts: CheckInput) -> tuple[Copies, int] | None:
    """The keys that are to be written, and the revision of their version."""
    for large in facts.of(LargeUpdateKey).values():
        update, before = facts.log().get(large.version), _fold(facts, large.version - 1).catalog
        item = facts.by_name.get(str(CatalogUpdateKey(large.version)))
        if large.is_copied or update is None or before is None or item is None:
            continue
        try:
            copies = at_once(copies_of(update.entries, CatalogByKey(before)))
        except FOLDING:
            continue
        return copies[large.copied :], item.raw.mod_revision
    return None


def _parts(items: Iterable[Item]) -> Mapping[int, Mapping[int, RawPart]]:
    parts: dict[int, dict[int, RawPart]] = defaultdict(dict)
    for item in items:
        if isinstance(item.key, SnapshotPartKey):
            parts[item.key.version][item.key.part] = RawPart(item.is_readable, item.raw.value)
    return parts


def _fold(facts: CheckInput, to: int | None = None) -> Fold:
    """The fold from the oldest snapshot; not told where that snapshot cannot be read. *to*: the
    last version of it; None: the newest."""
    refs = facts.snapshots()
    if facts.has(SnapshotVersionKey()) and not refs:
        return Fold(None)
    try:
        base = facts.snapshot_catalog(refs[0]) if refs else Catalog()
    except Corrupt:
        return Fold(None)
    updates = (
        StoredUpdate(item.key, _readable(item), item.raw.mod_revision)
        for item in facts.items
        if isinstance(item.key, CatalogUpdateKey) and (to is None or item.key.version <= to)
    )
    return fold(base, updates, frozenset(ref.version for ref in refs))


def _readable(item: Item) -> CatalogUpdate | None:
    """The update of an item, if all of it can be read."""
    return cast("CatalogUpdate | None", item.value) if item.error is None else None


def _locks_in(raw: bytes) -> list[str]:
    """Returns the keys of locks in a record that this program cannot read, as far as it is
    understood: they are kept too."""
    try:
        return [str(lock["key"]) for lock in json.loads(raw)["locks"]]
    except (ValueError, LookupError, TypeError):
        return []


def _table_of_lock(key: str) -> int | None:
    kind, _, name = key.partition(":")
    if not name.isdecimal():
        return None
    if kind == "region":
        return table_of(RegionId(int(name)))
    return int(name) if kind in ("table", "route") else None
