"""The events that a watcher asks for: those of a catalog, of a schema, of a table. Pure.

An event of a table is selected by each name that it bears, before and after a rename: what leaves a
selection is told once, and what enters it is told in full. An event of a catalog or a schema is
selected with all that is in it, for a drop hides that. One of a tablespace is selected with its
catalog alone, and one of a placement by no condition.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from metasrv_base.errors import Refused
from metasrv_base.wire.events.events import CatalogEvent
from metasrv_base.wire.events.namespace_events import OfCatalogEvent, OfSchemaEvent
from metasrv_base.wire.events.placing_events import OfTablespaceEvent
from metasrv_base.wire.events.table_events import NamedAnewEvent, OfTableEvent

NO_NAME = ""
"""In place of the schema and the table of what stands in a catalog beside them."""
PARTS = ("catalog", "schema", "table")


@dataclass(frozen=True, slots=True)
class EventScope:
    """An object that an event is about. None: the event is about all that its catalog, or its
    schema, holds."""

    catalog: str
    schema: str | None = None
    table: str | None = None
    table_id: int | None = None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Conditions that must all hold; None: any."""

    catalog: str | None = None
    schema: str | None = None
    table: str | None = None
    table_id: int | None = None

    @classmethod
    def of(
        cls,
        catalog: str | None = None,
        schema: str | None = None,
        table: str | None = None,
        table_id: int | None = None,
    ) -> "EventFilter":
        """*schema* and *table*: a name, or names with dots, as `catalog.schema.table`. Raises
        Refused if they contradict each other."""
        parts: dict[str, str] = {}
        for given, most in ((catalog, 1), (schema, 2), (table, 3)):
            if given is None:
                continue
            names = given.split(".")
            if len(names) > most or not all(names):
                raise _refused(PARTS[most - 1], given, ".".join(PARTS[:most]))
            for part, name in zip(PARTS[most - len(names) : most], names, strict=True):
                if parts.setdefault(part, name) != name:
                    raise _refused(part, name, parts[part])
        return cls(parts.get("catalog"), parts.get("schema"), parts.get("table"), table_id)

    @property
    def selects_all(self) -> bool:
        return self == EventFilter()

    def selects(self, scopes: tuple[EventScope, ...], before: Catalog) -> bool:
        """*scopes*: of an event. *before*: the catalog before its version."""
        return self.selects_all or any(self._selects(scope, before) for scope in scopes)

    def _selects(self, scope: EventScope, before: Catalog) -> bool:
        if self.table_id is not None and not self._holds_table(scope, self.table_id, before):
            return False
        return (
            self.catalog in (None, scope.catalog)
            and (self.schema is None or scope.schema in (None, self.schema))
            and (self.table is None or scope.table in (None, self.table))
        )

    @staticmethod
    def _holds_table(scope: EventScope, table_id: int, before: Catalog) -> bool:
        if scope.table_id is not None:
            return scope.table_id == table_id
        table = before.tables.get(table_id)
        if table is None or table.dropped_at_ms is not None:
            return False
        names = (table.info.catalog, table.info.schema_name)
        return scope.catalog == names[0] and scope.schema in (None, names[1])


def _refused(part: str, given: str, expected: str) -> Refused:
    return Refused("invalid-request", pointer=f"/{part}", found=given, expected=expected)


def scopes_of(event: CatalogEvent) -> tuple[EventScope, ...]:
    """Returns what *event* is about: one object; of a table that is named anew, both names; of a
    placement nothing that a filter names."""
    return tuple(_scopes(event))


def _scopes(event: CatalogEvent) -> Iterator[EventScope]:
    match event:
        case OfTableEvent():
            id = event.table_id
            yield EventScope(event.catalog, event.schema_name, event.table, id)
            if isinstance(event, NamedAnewEvent):
                catalog, schema = event.previous_catalog, event.previous_schema
                yield EventScope(catalog, schema, event.previous_table, id)
        case OfSchemaEvent():
            yield EventScope(event.catalog, event.schema_name)
        case OfCatalogEvent():
            yield EventScope(event.catalog)
        case OfTablespaceEvent():
            yield EventScope(event.catalog, NO_NAME, NO_NAME)
