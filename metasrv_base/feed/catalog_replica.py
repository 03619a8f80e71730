"""The catalog as a reader of the feed knows it: an immutable value that lines move forward. Pure.

`FeedReader` takes the lines of one stream; what it gives is a Mirror, or None while the parts of a
first snapshot are still coming. A mirror never goes back, and no version is passed over.
"""

from dataclasses import dataclass, field, replace

from immutables import Map

from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Corrupt
from metasrv_base.feed.packed_feed import ComingTables, FullName, PackedFeedTables
from metasrv_base.pack_map import PackMap
from metasrv_base.values.intern_fields import Shapes, intern_fields
from metasrv_base.wire.frontend.feed import (
    AddressChange,
    FeedAlive,
    FeedColumn,
    FeedTable,
    Goaway,
    HeardLine,
    ParsedPart,
    SnapshotLine,
    Update,
)


@dataclass(frozen=True, slots=True)
class CatalogReplica:
    """The tables at one version of the catalog."""

    version: int
    tables: PackMap[FeedTable] = field(default_factory=PackMap)
    names: Map[FullName, int] = field(default_factory=Map)
    """Ids of the tables that statements may find, by name."""
    addresses: Map[str, str] = field(default_factory=Map)
    """Node id -> base URL. Not of the version: as last heard."""
    zones: Map[str, str] = field(default_factory=Map)
    """Node id -> zone, as last heard."""
    shapes: Shapes[FeedColumn] = field(default_factory=Shapes, compare=False)
    """Columns that tables share in memory."""

    def find(self, catalog: str, schema: str, name: str) -> FeedTable | None:
        table_id = self.names.get((catalog, schema, name))
        return None if table_id is None else self.tables[table_id]

    def address_of(self, node: str | None) -> str | None:
        return None if node is None else self.addresses.get(node)

    def updated(self, update: Update) -> "CatalogReplica":
        """The next version; a repeat changes nothing. Raises Corrupt for a gap."""
        if update.version <= self.version:
            return self
        if update.version != self.version + 1:
            raise Corrupt(log="gap", expected=self.version + 1, found=update.version)
        changed = {table.id for table in update.tables}
        hidden = tuple(
            _hidden(self.tables[table_id]) for table_id in update.hidden if table_id in self.tables
        )
        left = self._without(*changed, *update.hidden, *update.gone)
        return replace(left._with((*update.tables, *hidden)), version=update.version)

    def is_waited_for(self, update: Update) -> bool:
        """Whether a holder at this mirror tells of *update* at once: a table that it has is gone
        or hidden, or comes at another schema version, under another name, or with other names or
        defaults of columns. A floor, a route or a new table can wait."""
        if any(table_id in self.tables for table_id in (*update.gone, *update.hidden)):
            return True
        pairs = ((self.tables.get(new.id), new) for new in update.tables)
        return any(old and _is_other(old, new) for old, new in pairs)

    def moved(self, change: AddressChange) -> "CatalogReplica":
        if change.address is None:
            has_address = change.node in self.addresses
            addresses = self.addresses.delete(change.node) if has_address else self.addresses
        else:
            addresses = self.addresses.set(change.node, change.address)
        zones = self.zones if change.zone is None else self.zones.set(change.node, change.zone)
        return replace(self, addresses=addresses, zones=zones)

    def _without(self, *table_ids: int) -> "CatalogReplica":
        """A name is taken away only from who bears it: two tables may exchange theirs."""
        tables, names = self.tables, self.names
        for table_id in table_ids:
            table = tables.get(table_id)
            if table is not None:
                tables = tables.delete(table_id)
                if _is_found(table):
                    names = names.delete(_name_of(table))
        return replace(self, tables=tables, names=names)

    def _with(self, changed: tuple[FeedTable, ...]) -> "CatalogReplica":
        tables, names, shapes = self.tables, self.names, self.shapes
        for table in changed:
            intern_fields(
                table, table.partition, *table.indexes, *table.constraints, *table.regions
            )
            shapes, vars(table)["columns"] = shapes.met(tuple(table.columns))  # equal ones
            tables = tables.set(table.id, table)
            if _is_found(table):
                names = names.set(_name_of(table), table.id)
        return replace(self, tables=tables, names=names, shapes=shapes)


@dataclass(frozen=True, slots=True)
class ComingSnapshot:
    """Parts of a snapshot at one version of the catalog."""

    version: int
    tables: ComingTables = field(default_factory=ComingTables)


@dataclass(frozen=True, slots=True)
class FeedReader:
    """A reader in the middle of a stream, or between two."""

    mirror: CatalogReplica | None = None
    _coming: ComingSnapshot | None = None
    """A snapshot whose last part has not arrived yet."""

    def ended(self) -> "FeedReader":
        """The stream is gone: a snapshot that was not whole never was."""
        return FeedReader(self.mirror)

    def heard(self, line: HeardLine) -> "FeedReader":
        """Returns the reader after *line*. Raises Corrupt for a line that cannot follow."""
        match line:
            case ParsedPart():
                return self._heard_part(line)
            case SnapshotLine():
                return self._heard_part(ParsedPart.of(line))
            case Update():
                return replace(self, mirror=self._known(line.type).updated(line))
            case AddressChange():
                return replace(self, mirror=self._known(line.type).moved(line))
            case FeedAlive() | Goaway():
                return self

    def _known(self, line: str) -> CatalogReplica:
        if self.mirror is None or self._coming is not None:
            raise Corrupt(log="a line before the snapshot is whole", line=line)
        return self.mirror

    def _heard_part(self, part: ParsedPart) -> "FeedReader":
        """An older snapshot than what is known is Corrupt: a reader asks from what it has."""
        coming = self._coming or ComingSnapshot(part.version)
        if coming.version != part.version:
            raise Corrupt(log="torn", expected=coming.version, found=part.version)
        tables = coming.tables.with_part(part.tables)
        if not part.is_last:
            return replace(self, _coming=replace(coming, tables=tables))
        if self.mirror is not None and part.version < self.mirror.version:
            raise Corrupt(log="back", known=self.mirror.version, found=part.version)
        return FeedReader(
            CatalogReplica(
                part.version,
                PackMap(PackedFeedTables(tables)),
                tables.names,
                Map(part.addresses),
                Map(part.zones),
            )
        )


def _is_other(old: FeedTable, new: FeedTable) -> bool:
    is_same = (old.schema_version, old.columns) == (new.schema_version, new.columns)
    return not (is_same and _name_of(old) == _name_of(new) and _is_found(new))


def _is_found(table: FeedTable) -> bool:
    return table.state is ElementState.PUBLIC


def _hidden(table: FeedTable) -> FeedTable:
    return table.model_copy(update={"state": ElementState.WRITE_ONLY})


def _name_of(table: FeedTable) -> FullName:
    return table.catalog, table.schema_name, table.name
