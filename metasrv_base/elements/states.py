"""How far an element of a schema has come: the states that are stored, sent and shown."""

from enum import StrEnum


class ElementState(StrEnum):
    """What statements do in each state is in `metasrv_base.elements.graphs`.

    The reorg is a phase of WRITE_ONLY and the delete reorg one of DELETE_ONLY: statements do the
    same before, during and after it, so no holder has to learn of it (docs/decisions/0080).
    """

    ABSENT = "absent"
    """Never stored: an element that is absent is not in the schema."""
    DELETE_ONLY = "delete-only"
    """What it has stored is removed with its row; nothing new is stored."""
    WRITE_ONLY = "write-only"
    """Every write maintains it; it may be incomplete, so no read uses it."""
    PUBLIC = "public"
    """Complete, and visible to users."""
