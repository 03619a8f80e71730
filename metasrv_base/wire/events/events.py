"""The catalog as a stream of typed events, from any metasrv: `GET /v1/events`.

Server-sent events. `version` has all events of one version of the catalog as its data, and the
version as its id. `reset` says that events before a version cannot be told: read the catalog at
that version, or a newer one, and go on from there. `goaway`: this server goes, ask again with
`Last-Event-ID`. A block without data tells the version up to which nothing else is to be told.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from metasrv_base.wire.events.element_events import (
    ColumnAddedEvent,
    ColumnAlteredEvent,
    ColumnDroppedEvent,
    ColumnRenamedEvent,
    ColumnTypeChangedEvent,
    ConstraintCreatedEvent,
    ConstraintDroppedEvent,
    ConstraintDroppingEvent,
    ConstraintPublicEvent,
    IndexCreatedEvent,
    IndexDroppedEvent,
    IndexDroppingEvent,
    IndexPublicEvent,
)
from metasrv_base.wire.events.namespace_events import (
    CatalogAlteredEvent,
    CatalogCreatedEvent,
    CatalogDroppedEvent,
    CatalogDroppingEvent,
    SchemaCreatedEvent,
    SchemaDroppedEvent,
    SchemaDroppingEvent,
)
from metasrv_base.wire.events.placing_events import (
    PlacementAlteredEvent,
    PlacementCreatedEvent,
    PlacementDroppedEvent,
    PlacementRenamedEvent,
    TablespaceAlteredEvent,
    TablespaceCreatedEvent,
    TablespaceDroppedEvent,
    TablespaceRenamedEvent,
)
from metasrv_base.wire.events.table_events import (
    RouteChangedEvent,
    TableAlteredEvent,
    TableCreatedEvent,
    TableDroppedEvent,
    TableDroppingEvent,
    TableDropUndoneEvent,
    TablePurgedEvent,
    TableRenamedEvent,
    TableUndroppedEvent,
)
from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel

PATH = "/v1/events"
VERSION = "version"
RESET = "reset"
BEAT_MS = 5_000
"""Between signs of life; a watcher that has heard nothing for several of them asks another
server."""

CatalogEvent = Annotated[
    CatalogCreatedEvent
    | CatalogAlteredEvent
    | CatalogDroppingEvent
    | CatalogDroppedEvent
    | SchemaCreatedEvent
    | SchemaDroppingEvent
    | SchemaDroppedEvent
    | TableCreatedEvent
    | TableRenamedEvent
    | TableAlteredEvent
    | TableDroppingEvent
    | TableDropUndoneEvent
    | TableDroppedEvent
    | TableUndroppedEvent
    | TablePurgedEvent
    | ColumnAddedEvent
    | ColumnDroppedEvent
    | ColumnRenamedEvent
    | ColumnTypeChangedEvent
    | ColumnAlteredEvent
    | IndexCreatedEvent
    | IndexPublicEvent
    | IndexDroppingEvent
    | IndexDroppedEvent
    | ConstraintCreatedEvent
    | ConstraintPublicEvent
    | ConstraintDroppingEvent
    | ConstraintDroppedEvent
    | RouteChangedEvent
    | PlacementCreatedEvent
    | PlacementAlteredEvent
    | PlacementRenamedEvent
    | PlacementDroppedEvent
    | TablespaceCreatedEvent
    | TablespaceAlteredEvent
    | TablespaceRenamedEvent
    | TablespaceDroppedEvent,
    Field(discriminator="type"),
]


class VersionEvents(WireModel):
    """Data of `event: version`: the events of one version of the catalog that the filter selects,
    in order."""

    version: PositiveInt64
    events: Listed[CatalogEvent] = Field(min_length=1)


class EventsReset(WireModel):
    """Data of `event: reset`: events up to `version` cannot be told."""

    type: Literal["reset"] = "reset"
    version: Int64
    """Read the catalog at this version or a newer one; events after it follow."""
    reason: Literal["expired", "behind", "ahead", "unknown-id"]
    """The log is not kept back to where the watcher was; the watcher was too slow; its version is
    none of this cluster's yet; its `Last-Event-ID` is no version."""


_VERSION: TypeAdapter[VersionEvents] = TypeAdapter(VersionEvents)


def read_version(data: str) -> VersionEvents:
    """Raises ValueError for data that no server of ours would send."""
    return _VERSION.validate_json(data)
