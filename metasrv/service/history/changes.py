"""The history of the catalog: each request with all that it changed, the newest first.

A request makes one version, or many: an ADD COLUMN six, a cascade one for each table. Its updates
bear the id of its procedure, or of a child of that. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from keys.catalog.catalog import Catalog
from keys.model.log import CatalogUpdate
from keys.model.origin import Origin
from metasrv.service.bodies.shapes import time_of
from metasrv.service.catalog.object_changes import named, object_changes, touched
from metasrv_base.wire.api.transitions import ShiftBody
from metasrv_base.wire.api.versions import CatalogChange, ChangedObject, StatementBody
from procedures.elements.shifts import shifts

LISTED_MAX = 100  # operations, and transitions, of one change
UNCHANGED = "nothing that shows, or not yet"


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on a change and on one of the objects that it changed; None: any."""

    operation: str | None = None
    catalog: str | None = None
    schema: str | None = None
    """Its name, or `catalog.schema`."""
    table_id: int | None = None
    by: str | None = None

    def select(self, id: str | None, name: str) -> bool:
        """Whether an object is meant. *id*: of a table; None: it is none. *name*: in full."""
        catalog, _, within = name.partition(".")
        schema = within.partition(".")[0]
        return (
            (self.catalog is None or catalog == self.catalog)
            and (self.schema is None or self.schema in (schema, f"{catalog}.{schema}"))
            and (self.table_id is None or id == str(self.table_id))
        )

    def select_operation(self, change: ChangedObject) -> bool:
        resource = change.resource
        id = resource.id if resource.type == "table" else None
        return change.operation.op == self.operation and self.select(id, resource.name)


@dataclass(frozen=True, slots=True)
class Group:
    """Updates of one request, oldest first."""

    root: str | None
    """The procedure that the request made; None: the bootstrap."""
    updates: list[CatalogUpdate]


def change_of(
    group: Group, before: Catalog, after: Catalog, filters: Filters, *, transitions: bool
) -> CatalogChange | None:
    """The change between *before*, the catalog before the first update of *group*, and *after*, at
    its last; None: it does not meet *filters*."""
    first, last = group.updates[0], group.updates[-1]
    if filters.by is not None and (first.origin is None or first.origin.by != filters.by):
        return None
    if not any(filters.select(*each) for each in named(touched(group.updates), before, after)):
        return None
    operations = list(object_changes(group.updates, before, after))
    if filters.operation is not None and not any(map(filters.select_operation, operations)):
        return None
    states = tuple(islice(_shifts(group, before, after), LISTED_MAX)) if transitions else ()
    text = "; ".join(each.text for each in operations[:LISTED_MAX])
    if len(operations) > LISTED_MAX:
        text = f"{text}; and {len(operations) - LISTED_MAX} more"
    origin = first.origin
    return CatalogChange(
        version=last.version,
        first_version=first.version,
        versions=len(group.updates),
        committed_at=time_of(last.at_ms),
        by=None if origin is None else origin.by,
        request_id=None if origin is None else origin.request_id,
        procedure_id=group.root,
        statement=_statement(origin),
        operations=tuple(operations[:LISTED_MAX]),
        operations_total=len(operations),
        transitions=states,
        text=text or UNCHANGED,
    )


def _statement(origin: Origin | None) -> StatementBody | None:
    if origin is None or origin.statement is None:
        return None
    if origin.cut is None:
        return StatementBody(text=origin.statement)
    return StatementBody(text=origin.statement, bytes=origin.cut.bytes, sha256=origin.cut.sha256)


def _shifts(group: Group, before: Catalog, after: Catalog) -> Iterator[ShiftBody]:
    for table_id in touched(group.updates).tables:
        old, new = before.tables.get(table_id), after.tables.get(table_id)
        if old is None or new is None:
            continue
        if old.info.state is not new.info.state:
            yield ShiftBody(
                what="table",
                id=table_id,
                name=new.info.full_name,
                before=old.info.state,
                after=new.info.state,
            )
        for change in shifts(old.info, new.info):
            yield ShiftBody.model_validate(change.model_dump())
