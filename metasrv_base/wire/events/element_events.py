"""Events of the elements of a table: columns, indexes, constraints.

A column is told of when users see it, and when they do not any more; an index and a constraint also
while they are on their way. The `table.altered` of the same version has the whole definition.
"""

from typing import Literal

from metasrv_base.wire.api.tables import ColumnBody, ConstraintBody, IndexBody
from metasrv_base.wire.events.table_events import OfTableEvent
from metasrv_base.wire.model import Int64


class ColumnAddedEvent(OfTableEvent):
    """A column became public; also one whose drop was undone."""

    type: Literal["column.added"] = "column.added"
    column: ColumnBody
    position: Int64
    """Its place among the public columns of this version, from 0."""


class ColumnDroppedEvent(OfTableEvent):
    """Users do not see the column any more."""

    type: Literal["column.dropped"] = "column.dropped"
    column_id: Int64
    column_name: str


class ColumnRenamedEvent(OfTableEvent):
    type: Literal["column.renamed"] = "column.renamed"
    column_id: Int64
    column_name: str
    previous_name: str


class ColumnTypeChangedEvent(OfTableEvent):
    """A column of another type came in the place of one; undone, the other way round."""

    type: Literal["column.type_changed"] = "column.type_changed"
    column: ColumnBody
    position: Int64
    """Its place among the public columns of this version, from 0."""
    previous_id: Int64
    previous_name: str
    previous_type: str


class ColumnAlteredEvent(OfTableEvent):
    """The column has another default, or may be null now, or not any more."""

    type: Literal["column.altered"] = "column.altered"
    column: ColumnBody


class IndexCreatedEvent(OfTableEvent):
    """The definition lists the index; it is filled before it is public."""

    type: Literal["index.created"] = "index.created"
    index: IndexBody


class OfIndexEvent(OfTableEvent):
    index_id: Int64
    index_name: str


class IndexPublicEvent(OfIndexEvent):
    """Reads may use the index from now on."""

    type: Literal["index.public"] = "index.public"


class IndexDroppingEvent(OfIndexEvent):
    """No read uses the index any more; until it is dropped, an undrop makes it public."""

    type: Literal["index.dropping"] = "index.dropping"


class IndexDroppedEvent(OfIndexEvent):
    """The definition does not list the index any more."""

    type: Literal["index.dropped"] = "index.dropped"


class ConstraintCreatedEvent(OfTableEvent):
    """The definition lists the constraint; rows may still be against it."""

    type: Literal["constraint.created"] = "constraint.created"
    constraint: ConstraintBody


class OfConstraintEvent(OfTableEvent):
    constraint_id: Int64
    constraint_name: str


class ConstraintPublicEvent(OfConstraintEvent):
    """Every row satisfies the constraint. A NOT NULL is said by its column from now on."""

    type: Literal["constraint.public"] = "constraint.public"


class ConstraintDroppingEvent(OfConstraintEvent):
    """Rows may be against the constraint from now on."""

    type: Literal["constraint.dropping"] = "constraint.dropping"


class ConstraintDroppedEvent(OfConstraintEvent):
    """The definition does not list the constraint any more."""

    type: Literal["constraint.dropped"] = "constraint.dropped"
