"""States of an element of a schema, as they are stored, sent and shown."""

from metasrv_base.values.value_enum import ValueEnum


class ElementState(ValueEnum):
    """States of an element; `metasrv_base.elements.graphs` says what statements do in each.

    The reorg is a phase of WRITE_ONLY and the delete reorg one of DELETE_ONLY: statements do the
    same before, during and after it, so no holder has to learn of it (docs/decisions/0080).
    """

    ABSENT = "absent"
    """Never stored: an element that is absent is not in the schema."""
    DELETE_ONLY = "delete-only"
    """Stored data of the element is removed with its row; nothing new is stored."""
    WRITE_ONLY = "write-only"
    """Every write maintains it; it may be incomplete, so no read uses it."""
    PUBLIC = "public"
    """Complete, and visible to users."""
