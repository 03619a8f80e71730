"""The events that a watcher asks for: those of a catalog, of a schema, of a table. Pure.

An event of a table is selected by each name that it bears, before and after a rename: what leaves a
selection is told once, and what enters it is told in full. An event of a catalog or a schema is
selected with all that is in it just before it, for a drop hides that. One of a tablespace is
selected with its catalog alone, and one of a placement by no condition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from keys.catalog.catalog import Catalog
from metasrv_base.errors import Refused
from metasrv_base.wire.events.events import CatalogEvent
from metasrv_base.wire.events.namespace_events import OfCatalogEvent, OfSchemaEvent
from metasrv_base.wire.events.placing_events import OfTablespaceEvent
from metasrv_base.wire.events.table_events import (
    NamedAnewEvent,
    OfTableEvent,
    TableDroppedEvent,
    TablePurgedEvent,
)

T = TypeVar("T")
NO_NAME = ""
"""Stands for the schema and the table of what is in a catalog beside them."""
PARTS = ("catalog", "schema", "table")


@dataclass(frozen=True, slots=True)
class EventScope:
    """An object that an event is about. None: the event is about all that its catalog, or its
    schema, holds."""

    catalog: str
    schema: str | None = None
    table: str | None = None
    table_id: int | None = None
    stands: bool = True
    """Whether the table stands after the event."""


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
        """Builds a filter. *schema* and *table* are a name, or names with dots, as
        `catalog.schema.table`. Raises Refused if they contradict each other."""
        parts: dict[str, str] = {}
        for text, most in ((catalog, 1), (schema, 2), (table, 3)):
            if text is None:
                continue
            names = text.split(".")
            if len(names) > most or not all(names):
                raise _refused(PARTS[most - 1], text, ".".join(PARTS[:most]))
            for part, name in zip(PARTS[most - len(names) : most], names, strict=True):
                if parts.setdefault(part, name) != name:
                    raise _refused(part, name, parts[part])
        return cls(parts.get("catalog"), parts.get("schema"), parts.get("table"), table_id)

    @property
    def selects_all(self) -> bool:
        return self == EventFilter()

    def select(
        self, events: Iterable[tuple[tuple[EventScope, ...], T]], before: Catalog
    ) -> Iterator[T]:
        """Yields those that are selected of the *events* of one version, all of them in order, each
        with its scopes. *before* is the catalog before that version."""
        selects_all, home = self.selects_all, self._home(before)
        for scopes, event in events:
            if selects_all or any(self.selects(scope, home) for scope in scopes):
                yield event
            own = None if self.table_id is None else self._own(scopes)
            if own is not None:
                home = own if own.stands else None

    def selects(self, scope: EventScope, home: EventScope | None = None) -> bool:
        """Returns whether an event about *scope* is selected. *home* is where the table of
        `table_id` stands just before the event; None: nowhere, or the event is about a table."""
        if self.table_id is not None and not self._holds_table(scope, self.table_id, home):
            return False
        return (
            self.catalog in (None, scope.catalog)
            and (self.schema is None or scope.schema in (None, self.schema))
            and (self.table is None or scope.table in (None, self.table))
        )

    @staticmethod
    def _holds_table(scope: EventScope, table_id: int, home: EventScope | None) -> bool:
        if scope.table_id is not None:
            return scope.table_id == table_id
        if home is None:
            return False
        return scope.catalog == home.catalog and scope.schema in (None, home.schema)

    def _home(self, before: Catalog) -> EventScope | None:
        table = None if self.table_id is None else before.tables.get(self.table_id)
        if table is None or table.dropped_at_ms is not None:
            return None
        info = table.info
        return EventScope(info.catalog, info.schema_name, info.name, info.table_id)

    def _own(self, scopes: tuple[EventScope, ...]) -> EventScope | None:
        return next((scope for scope in scopes if scope.table_id == self.table_id), None)


def _refused(part: str, text: str, expected: str) -> Refused:
    return Refused("invalid-request", pointer=f"/{part}", found=text, expected=expected)


def scopes_of(event: CatalogEvent) -> tuple[EventScope, ...]:
    """Returns what *event* is about: one object; of a table that is named anew, the new name and
    the one before; of a placement nothing that a filter names."""
    return tuple(_scopes(event))


def _scopes(event: CatalogEvent) -> Iterator[EventScope]:
    match event:
        case OfTableEvent():
            id = event.table_id
            stands = not isinstance(event, TableDroppedEvent | TablePurgedEvent)
            yield EventScope(event.catalog, event.schema_name, event.table, id, stands)
            if isinstance(event, NamedAnewEvent):
                catalog, schema = event.previous_catalog, event.previous_schema
                yield EventScope(catalog, schema, event.previous_table, id)
        case OfSchemaEvent():
            yield EventScope(event.catalog, event.schema_name)
        case OfCatalogEvent():
            yield EventScope(event.catalog)
        case OfTablespaceEvent():
            yield EventScope(event.catalog, NO_NAME, NO_NAME)
