"""Placements and tablespaces of a catalog, and the tables that use them: an immutable value."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import assert_never

from immutables import Map

from keys.model.log import (
    PlacementAltered,
    PlacementCreated,
    PlacementDropped,
    PlacementEntry,
    PlacementRenamed,
    PlacingEntry,
    TablespaceAltered,
    TablespaceCreated,
    TablespaceDropped,
    TablespaceEntry,
    TablespaceRenamed,
)
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT,
    DEFAULT_PLACEMENT_ID,
    DEFAULT_PROFILE,
    PlacementInfo,
    default_placement,
)
from keys.model.placing.tablespaces import DEFAULT_TABLESPACE, TablespaceInfo
from keys.model.tables import TableInfo
from metasrv_base.errors import Corrupt, NotFound
from metasrv_base.values.frozen import frozen

Spaces = Map[str, TablespaceInfo]
PlacementUse = tuple[int, str]
"""A placement, and one of its storage profiles."""
CopyUse = tuple[int, int | None, frozenset[str]]
"""`replicas` and `min_in_sync` of a table, and those of the two that it names itself."""
USUAL_COPIES: CopyUse = 1, None, frozenset()
BUILT_IN = default_placement(0)
"""The default of a cluster whose log has none yet."""


@frozen
class PlacingNames:
    """The current names of a table's placement, storage profile and tablespace; None if that object
    is gone, which only happens for a dropped table."""

    placement: str | None
    storage_profile: str | None
    tablespace: str | None


@dataclass(frozen=True, slots=True)
class Placing:
    """A part of `Catalog`. A table that a batch has dropped (`TableInfo.dropping`) uses nothing."""

    placements: Map[str, PlacementInfo] = field(default_factory=Map)
    tablespaces: Map[str, Spaces] = field(default_factory=Map)
    """Catalog -> name -> tablespace."""
    placement_names: Map[int, str] = field(default_factory=Map)
    tablespace_names: Map[int, str] = field(default_factory=Map)
    placed: Map[int, Map[int, str]] = field(default_factory=Map)
    """Placement -> living tables that use it -> the profile of each; of the default one only those
    that name a profile."""
    grouped: Map[int, Map[int, None]] = field(default_factory=Map)
    """Tablespace that is no default -> living tables in it."""
    copied: Map[int, CopyUse] = field(default_factory=Map)
    """Living tables with other numbers of copies than USUAL_COPIES -> these numbers."""

    @property
    def default(self) -> PlacementInfo:
        return self.placements.get(DEFAULT_PLACEMENT, BUILT_IN)

    def placement(self, placement_id: int | None) -> PlacementInfo | None:
        """Returns the placement that a table names, the default one for None. Returns None if it
        does not exist."""
        if placement_id is None:
            return self.default
        name = self.placement_names.get(placement_id)
        return None if name is None else self.placements[name]

    def placement_of(self, info: TableInfo) -> PlacementInfo:
        """The placement of a table; of a dropped one whose placement is gone the default."""
        return self.placement(info.placement_id) or self.default

    def tablespaces_of(self, catalog: str) -> Spaces:
        return self.tablespaces.get(catalog, Map())

    def names_of(self, info: TableInfo) -> PlacingNames:
        placement = self.placement(info.placement_id)
        tablespace = (
            DEFAULT_TABLESPACE
            if info.tablespace_id is None
            else self.tablespace_names.get(info.tablespace_id)
        )
        profile = DEFAULT_PROFILE if info.storage_profile is None else info.storage_profile
        return PlacingNames(placement.name if placement else None, profile, tablespace)

    def uses_of(self, info: TableInfo) -> PlacingNames:
        """Returns the names of `names_of`, without those that every table uses. Raises NotFound for
        an object that is gone."""
        names, use = self.names_of(info), placement_used(info.placement_id, info.storage_profile)
        if use is not None and names.placement is None:
            raise NotFound(what="placement", name=f"{use[0]}, which the table used")
        if info.tablespace_id is not None and names.tablespace is None:
            raise NotFound(what="tablespace", name=f"{info.tablespace_id}, which the table used")
        return PlacingNames(
            None if use is None else names.placement,
            None if use is None else names.storage_profile,
            None if info.tablespace_id is None else names.tablespace,
        )

    def placed_in(self, placement_id: int) -> Map[int, str]:
        """Living tables that use the placement -> the storage profile of each, as `placed`."""
        return self.placed.get(placement_id, Map())

    def grouped_in(self, tablespace_id: int) -> Map[int, None]:
        """Living tables in the tablespace, as `grouped`."""
        return self.grouped.get(tablespace_id, Map())

    def unused(self) -> "Placing":
        """The same, as if no table used any."""
        return replace(self, placed=Map(), grouped=Map(), copied=Map())

    def must_have(self, placements: Iterable[int], tablespaces: Iterable[int]) -> None:
        """Raises Corrupt, with ids that tables use and that do not exist."""
        standing = {*self.placement_names, DEFAULT_PLACEMENT_ID}
        missing = {*placements} - standing, {*tablespaces} - {*self.tablespace_names}
        if any(missing):
            raise Corrupt(placements=sorted(missing[0]), tablespaces=sorted(missing[1]))

    def apply(self, entry: PlacingEntry) -> "Placing":
        """Raises Corrupt for an entry that cannot follow."""
        if isinstance(entry, PlacementEntry):
            return self._placement(entry)
        return self._tablespace(entry)

    def used_by(self, info: TableInfo) -> "Placing":
        """Adds the use by *info*, a living table. Raises Corrupt if it uses what does not exist."""
        if info.dropping is not None:
            return self
        placement = placement_used(info.placement_id, info.storage_profile)
        copies = copy_use(info.replicas, info.min_in_sync, info.own_copies, info.dropping)
        return self.with_use(info.table_id, placement, info.tablespace_id, copies)

    def with_use(
        self,
        table_id: int,
        placement: PlacementUse | None,
        tablespace_id: int | None,
        copies: CopyUse | None = None,
    ) -> "Placing":
        """Adds the use by a living table. Raises Corrupt if the placement or tablespace does not
        exist."""
        state = self
        if placement is not None:
            number, profile = placement
            if number != DEFAULT_PLACEMENT_ID and number not in self.placement_names:
                raise Corrupt(table_id=table_id, placement_id=number)
            tables = self.placed.get(number, Map[int, str]()).set(table_id, profile)
            state = replace(state, placed=self.placed.set(number, tables))
        if tablespace_id is not None:
            if tablespace_id not in self.tablespace_names:
                raise Corrupt(table_id=table_id, tablespace_id=tablespace_id)
            others = self.grouped.get(tablespace_id, Map[int, None]()).set(table_id, None)
            state = replace(state, grouped=self.grouped.set(tablespace_id, others))
        if copies is not None:
            state = replace(state, copied=self.copied.set(table_id, copies))
        return state

    def unused_by(self, info: TableInfo) -> "Placing":
        """Removes the use by *info*, which was a living table."""
        if info.dropping is not None:
            return self
        state, table_id = self, info.table_id
        if (use := placement_used(info.placement_id, info.storage_profile)) is not None:
            placement_id, _ = use
            tables = self.placed[placement_id].delete(table_id)
            left = self.placed.set(placement_id, tables)
            state = replace(state, placed=left if tables else left.delete(placement_id))
        if table_id in state.copied:
            state = replace(state, copied=state.copied.delete(table_id))
        if info.tablespace_id is not None:
            others = self.grouped[info.tablespace_id].delete(table_id)
            rest = self.grouped.set(info.tablespace_id, others)
            state = replace(state, grouped=rest if others else rest.delete(info.tablespace_id))
        return state

    def _placement(self, entry: PlacementEntry) -> "Placing":
        match entry:
            case PlacementCreated(info=info):
                _must(entry, info.name not in self.placements, placement=info.name)
                _must(entry, info.placement_id not in self.placement_names)
                return self.with_placement(info)
            case PlacementAltered(info=info):
                old = self.placements.get(info.name)
                _must(entry, old is not None and old.placement_id == info.placement_id)
                return self.with_placement(info)
            case PlacementRenamed(name=name, info=info):
                old = self.placements.get(name)
                _must(entry, old is not None and old.placement_id == info.placement_id)
                _must(entry, info.name not in self.placements, placement=info.name)
                return replace(self, placements=self.placements.delete(name)).with_placement(info)
            case PlacementDropped(name=name):
                old = self.placements.get(name)
                if old is None or old.placement_id in self.placed:
                    raise Corrupt(entry=entry.op, placement=name)
                names = self.placement_names.delete(old.placement_id)
                return replace(self, placements=self.placements.delete(name), placement_names=names)
            case _:
                assert_never(entry)

    def with_placement(self, info: PlacementInfo) -> "Placing":
        return replace(
            self,
            placements=self.placements.set(info.name, info),
            placement_names=self.placement_names.set(info.placement_id, info.name),
        )

    def _tablespace(self, entry: TablespaceEntry) -> "Placing":
        match entry:
            case TablespaceCreated(info=info):
                spaces = self.tablespaces_of(info.catalog)
                _must(entry, info.name not in spaces, tablespace=info.name)
                _must(entry, info.tablespace_id not in self.tablespace_names)
                return self.with_tablespace(info)
            case TablespaceAltered(info=info):
                spaces = self.tablespaces_of(info.catalog)
                same = spaces.get(info.name)
                _must(entry, same is not None and same.tablespace_id == info.tablespace_id)
                return self.with_tablespace(info)
            case TablespaceRenamed(name=name, info=info):
                spaces = self.tablespaces_of(info.catalog)
                same = spaces.get(name)
                _must(entry, same is not None and same.tablespace_id == info.tablespace_id)
                _must(entry, info.name not in spaces, tablespace=info.name)
                kept = self.tablespaces.set(info.catalog, spaces.delete(name))
                return replace(self, tablespaces=kept).with_tablespace(info)
            case TablespaceDropped(catalog=catalog, name=name):
                spaces = self.tablespaces_of(catalog)
                same = spaces.get(name)
                if same is None or same.tablespace_id in self.grouped:
                    raise Corrupt(entry=entry.op, tablespace=f"{catalog}.{name}")
                names = self.tablespace_names.delete(same.tablespace_id)
                left = spaces.delete(name)
                kept = self.tablespaces.set(catalog, left)
                kept = kept if left else kept.delete(catalog)
                return replace(self, tablespaces=kept, tablespace_names=names)
            case _:
                assert_never(entry)

    def with_tablespace(self, info: TablespaceInfo) -> "Placing":
        spaces = self.tablespaces_of(info.catalog).set(info.name, info)
        return replace(
            self,
            tablespaces=self.tablespaces.set(info.catalog, spaces),
            tablespace_names=self.tablespace_names.set(info.tablespace_id, info.name),
        )


def placement_used(placement_id: int | None, storage_profile: str | None) -> PlacementUse | None:
    """The placement that a living table with these fields keeps from being dropped, or altered
    under it. None: it uses what every table does."""
    if placement_id is None and storage_profile is None:
        return None
    return placement_id or DEFAULT_PLACEMENT_ID, storage_profile or DEFAULT_PROFILE


def named_placement(placement_id: int | None) -> int | None:
    """The placement of a table with this field; None: the default one."""
    return None if placement_id == DEFAULT_PLACEMENT_ID else placement_id


def copy_use(
    replicas: int, min_in_sync: int | None, own: Collection[str], dropping: str | None
) -> CopyUse | None:
    """The numbers of copies of a living table with these fields; None: as most tables have."""
    use = replicas, min_in_sync, frozenset(own)
    return None if dropping is not None or use == USUAL_COPIES else use


def _must(entry: PlacingEntry, holds: bool, **facts: object) -> None:
    if not holds:
        raise Corrupt(entry=entry.op, **facts)
