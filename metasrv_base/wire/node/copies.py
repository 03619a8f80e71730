"""The copies of a region, as an order to one of them names all (docs/protocols.md P3.5, P5.8)."""

from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from metasrv_base.wire.model import Int32, Int64, WireModel

COPIES_MAX = 16  # of one region

OrderedRole = Literal["leader", "copy"]
"""The part of a node in a region: it leads it, or follows its leader."""
CopyStanding = Literal["leader", "in-sync", "learner"]


class OrderedCopy(WireModel):
    """One copy of a region. A copy is a root: another disk of its node is another copy."""

    node: str
    root: str
    """Folder of its files, on that node's storage."""
    role: CopyStanding
    """The standing of the copy. One in sync has every acknowledged row and may be promoted. A
    learner is sent every record; its acknowledgements do not count."""
    eligible: bool = Field(default=False, exclude_if=not_)
    """A learner that may lead if the leader is alone in its set, and is lost (docs/protocols.md
    P5.12). Only the leader is told, which has asked for that."""
    address: str | None = None
    """URL of the node; null: it is not registered."""


class RegionCopies(WireModel):
    """All copies of a region at the epoch of the order."""

    version: Int64
    """Rises with every change of the copies, at any epoch. Of two orders the one with the higher
    version counts, in whatever order they arrive."""
    min_in_sync: Int32
    """The number of copies, with the leader, that the leader must require to acknowledge a row
    (docs/protocols.md P5.12)."""
    last_leaves: bool = Field(default=False, exclude_if=not_)
    """The only other copy in sync is about to be removed from the region. The leader, which is told
    before, takes it that it may be alone in its set from now on (docs/protocols.md P4.5)."""
    members: Annotated[list[OrderedCopy], Field(min_length=1, max_length=COPIES_MAX)]
    """The leader first."""
