"""The catalog log: each change of metadata appends one update, and versions are dense."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import Field

from keys.key import Key
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.origin import Origin
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import COPIES_FORMAT as ROUTE_COPIES_FORMAT
from keys.model.tables import RegionRoute, TableInfo, TableRoute
from keys.value import StoredModel, StoredPart, is_none
from metasrv_base.values.frozen import frozen

STAGED_FORMAT = 4  # of an update whose entries are in parts
COPIES_FORMAT = 5  # of an update with a route that has copies beside the leaders'
DROPPED_ROUTE_FORMAT = 6  # of an update by which regions of a dropped table move


class CatalogCreated(StoredPart):
    op: Literal["catalog.created"] = "catalog.created"
    info: CatalogInfo


class CatalogAltered(StoredPart):
    """Other settings or limits of a tenant."""

    op: Literal["catalog.altered"] = "catalog.altered"
    info: CatalogInfo


class CatalogDropping(StoredPart):
    """A drop of a catalog began: it is hidden, with its schemas and their tables."""

    op: Literal["catalog.dropping"] = "catalog.dropping"
    info: CatalogInfo


class CatalogDropped(StoredPart):
    op: Literal["catalog.dropped"] = "catalog.dropped"
    name: str


class SchemaCreated(StoredPart):
    op: Literal["schema.created"] = "schema.created"
    info: SchemaInfo


class SchemaDropping(StoredPart):
    """A drop of a schema began: it is hidden, with its tables."""

    op: Literal["schema.dropping"] = "schema.dropping"
    info: SchemaInfo


class SchemaDropped(StoredPart):
    op: Literal["schema.dropped"] = "schema.dropped"
    catalog: str
    name: str


class TableCreated(StoredPart):
    op: Literal["table.created"] = "table.created"
    info: TableInfo
    route: TableRoute

    @property
    def has_copies(self) -> bool:
        """Whether a region has, or has had, a copy beside the leader's."""
        return self.route.format >= ROUTE_COPIES_FORMAT


class TableRenamed(StoredPart):
    op: Literal["table.renamed"] = "table.renamed"
    info: TableInfo


class TablesExchanged(StoredPart):
    """Two tables that bear each other's names from here on."""

    op: Literal["tables.exchanged"] = "tables.exchanged"
    first: TableInfo
    second: TableInfo


class TableAltered(StoredPart):
    op: Literal["table.altered"] = "table.altered"
    info: TableInfo


class TableDropped(StoredPart):
    op: Literal["table.dropped"] = "table.dropped"
    table_id: int
    dropped_at_ms: int
    dropped_by: str


class TableUndropped(StoredPart):
    op: Literal["table.undropped"] = "table.undropped"
    info: TableInfo
    route: TableRoute

    @property
    def has_copies(self) -> bool:
        """Whether a region has, or has had, a copy beside the leader's."""
        return self.route.format >= ROUTE_COPIES_FORMAT


class TablePurged(StoredPart):
    """A dropped table that is gone for good."""

    op: Literal["table.purged"] = "table.purged"
    table_id: int


class RouteChanged(StoredPart):
    op: Literal["route.changed"] = "route.changed"
    table_id: int
    version: int
    """Version of the TableRoute."""
    regions: tuple[RegionRoute, ...]
    """The regions that changed."""

    @property
    def has_copies(self) -> bool:
        """Whether a region has, or has had, a copy beside the leader's."""
        return any(region.needs_copies_format for region in self.regions)


class DroppedRouteChanged(StoredPart):
    """The regions of a dropped table that are elsewhere now, or are being moved."""

    op: Literal["route.dropped_changed"] = "route.dropped_changed"
    table_id: int
    version: int
    """Version of the TableRoute."""
    regions: tuple[RegionRoute, ...]
    """The regions that changed."""


class PlacementCreated(StoredPart):
    op: Literal["placement.created"] = "placement.created"
    info: PlacementInfo


class PlacementAltered(StoredPart):
    op: Literal["placement.altered"] = "placement.altered"
    info: PlacementInfo


class PlacementRenamed(StoredPart):
    op: Literal["placement.renamed"] = "placement.renamed"
    name: str
    """The name before."""
    info: PlacementInfo


class PlacementDropped(StoredPart):
    op: Literal["placement.dropped"] = "placement.dropped"
    name: str


class TablespaceCreated(StoredPart):
    op: Literal["tablespace.created"] = "tablespace.created"
    info: TablespaceInfo


class TablespaceAltered(StoredPart):
    op: Literal["tablespace.altered"] = "tablespace.altered"
    info: TablespaceInfo


class TablespaceRenamed(StoredPart):
    op: Literal["tablespace.renamed"] = "tablespace.renamed"
    name: str
    """The name before."""
    info: TablespaceInfo


class TablespaceDropped(StoredPart):
    op: Literal["tablespace.dropped"] = "tablespace.dropped"
    catalog: str
    name: str


PlacementEntry = PlacementCreated | PlacementAltered | PlacementRenamed | PlacementDropped
TablespaceEntry = TablespaceCreated | TablespaceAltered | TablespaceRenamed | TablespaceDropped
PlacingEntry = PlacementEntry | TablespaceEntry

Entry = Annotated[
    CatalogCreated
    | CatalogAltered
    | CatalogDropping
    | CatalogDropped
    | SchemaCreated
    | SchemaDropping
    | SchemaDropped
    | TableCreated
    | TableRenamed
    | TablesExchanged
    | TableAltered
    | TableDropped
    | TableUndropped
    | TablePurged
    | RouteChanged
    | DroppedRouteChanged
    | PlacementCreated
    | PlacementAltered
    | PlacementRenamed
    | PlacementDropped
    | TablespaceCreated
    | TablespaceAltered
    | TablespaceRenamed
    | TablespaceDropped,
    Field(discriminator="op"),
]


OF_FORMAT_3 = (CatalogAltered, *get_args(PlacingEntry))
"""Entries that servers of format 2 do not know."""


ROUTED = (TableCreated, TableUndropped, RouteChanged)
"""Entries with regions."""


def format_of(entries: tuple[Entry, ...]) -> int:
    """The lowest format that can hold *entries*, when they are in the update itself."""
    if any(isinstance(entry, DroppedRouteChanged) for entry in entries):
        return DROPPED_ROUTE_FORMAT
    if any(isinstance(entry, ROUTED) and entry.has_copies for entry in entries):
        return COPIES_FORMAT
    return 3 if any(isinstance(entry, OF_FORMAT_3) for entry in entries) else 2


class StagedRef(StoredPart):
    """Parts that hold what one value cannot (keys/model/staging/parts.py)."""

    batch: str
    """First part of the names of their keys."""
    parts: int
    size_bytes: int
    """Stored bytes of all parts."""
    digest: str
    """SHA-256 of the stored parts, in order."""


class CatalogUpdate(StoredModel):
    """The changes of one metadata transaction. Applying them reads nothing else but the parts that
    the update of a large one names.

    Format 6 has the route of a dropped table. Format 5 has a region with copies beside the
    leader's, in an entry or in a part. Format 4 has `staged`, and is written only where entries
    are. Format 3 has entries of more kinds. Format 2 has `origin`; format 1, which is read too, has
    none.
    """

    newest_format: ClassVar[int] = DROPPED_ROUTE_FORMAT

    format: int = Field(default=2, ge=1)
    version: int
    at_ms: int
    """Commit time, wall clock; at least the last update's plus 1."""
    procedure: str | None
    """Id of the procedure that made it; None for the bootstrap."""
    origin: Origin | None = None
    """The request that it comes from; None for the bootstrap, and in format 1."""
    staged: StagedRef | None = Field(default=None, exclude_if=is_none)
    """The parts that hold the entries; None: they are here."""
    entries: tuple[Entry, ...]

    def without_entries(self, staged: StagedRef) -> Self:
        """The update as it is stored where its entries are in parts. Parts have no format of their
        own: that of the update tells an older server that it cannot read them."""
        number = max(STAGED_FORMAT, self.format)
        update = {"format": number, "staged": staged, "entries": ()}
        return self.model_copy(update=update)


@frozen
class CatalogUpdateKey(Key[CatalogUpdate]):
    """Padded, because the log is read in order."""

    template: ClassVar[str] = "__catalog/update/{version:020}"
    value_type: ClassVar[type[StoredModel]] = CatalogUpdate

    version: int


class CatalogVersion(StoredModel):
    """The version of the last update. Every metadata transaction compares and moves it by one."""

    version: int
    at_ms: int
    """Commit time of the last update, or later: no later update has this time or an earlier one."""


@dataclass(frozen=True, slots=True)
class CatalogVersionKey(Key[CatalogVersion]):
    template: ClassVar[str] = "__catalog/version"
    value_type: ClassVar[type[StoredModel]] = CatalogVersion
