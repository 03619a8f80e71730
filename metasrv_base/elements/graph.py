"""A kind of schema element as data: what statements do in each state, and how it may move.

The frontend executes this data, the procedures move by it, and `metasrv_base.elements.proof`
explores it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from metasrv_base.elements.states import ElementState

Path: TypeAlias = tuple[ElementState, ...]
Edge: TypeAlias = tuple[ElementState, ElementState]


class Holds(StrEnum):
    """The data that an element keeps in the store, one item for each row."""

    ENTRIES = "entries"
    """An index: a key made of the row's values, which leads to the row."""
    VALUES = "values"
    """A column: the row's value."""
    ROWS = "rows"
    """A table: the row itself."""
    NOTHING = "nothing"
    """A constraint: it judges rows and keeps nothing."""


class Act(StrEnum):
    """One thing a statement does for an element. A statement does its acts in their order."""

    CHECK = "check"
    """Refuse the statement if the new row breaks the element. (Unique: if the new row's key
    already leads to another row. A column of another type: if the value has no conversion.)"""
    REMOVE = "remove"
    """Remove the old row's data of the element, and write a tombstone even if there was none. A
    unique key that leads to another row is not the old row's: it stays."""
    KEEP = "keep"
    """The value of the old row goes on into its next version; without this act it is gone."""
    PUT = "put"
    """Store the new row's data of the element: its entry, or its value (the user's, else the
    default)."""
    FILL = "fill"
    """The default is stored, unless a value was kept: users cannot name the column yet."""
    MIRROR = "mirror"
    """Store the new row's value of the mirrored column, converted. If it has no conversion, the
    statement is executed again at the next version, which needs none."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The acts of statements for an element in one state; empty: none, as if it were absent."""

    insert: tuple[Act, ...] = ()
    update: tuple[Act, ...] = ()
    """An update that touches the element: that changes an indexed or constrained value, or sets
    the column."""
    update_elsewhere: tuple[Act, ...] = ()
    """An update of the row that does not touch the element."""
    delete: tuple[Act, ...] = ()
    visible: bool = False
    """Users may name it and reads rely on it, so it must be complete; else it is unknown to both:
    `SELECT *` and an insert without a list of columns do not count it."""


class Reorg(StrEnum):
    """The work that must be done in WRITE_ONLY, once nobody uses an older version, before
    PUBLIC."""

    NONE = "none"
    BACKFILL = "backfill"
    """Entries are made of the rows as they were when the floor took hold. (Unique: two rows with
    one key end the change.)"""
    DEFAULT = "default"
    """Rows that were written before the column have its origin default."""
    VALIDATE = "validate"
    """A row that breaks the constraint ends the change."""


@dataclass(frozen=True, slots=True)
class Graph:
    """One kind of element. Edges are its two paths, what undoes them, and nothing else."""

    name: str
    holds: Holds
    behaviours: Mapping[ElementState, Behaviour]
    """Every state it has; in all others it is never found."""
    add: Path
    """From ABSENT to PUBLIC."""
    drop: Path
    """From PUBLIC to ABSENT."""
    reorg: Reorg = Reorg.NONE
    unique: bool = False
    """Two rows must not have one key."""
    alone: bool = False
    """A table to which no other element refers: what a schema without it does can neither touch
    its rows nor anything that they belong to."""
    mirrors: bool = False
    """One of two columns that have one value in two types, while either is hidden; they are proved
    together (`graphs.TYPE_CHANGE`)."""
    final: bool = False
    """Once it is not public any more, what replaces it is: its drop is never taken back."""

    def __post_init__(self) -> None:
        absent, public = ElementState.ABSENT, ElementState.PUBLIC
        assert (self.add[0], self.add[-1]) == (absent, public) == (self.drop[-1], self.drop[0])
        assert {*self.add, *self.drop} <= self.behaviours.keys()
        assert all(self.cancel(state) for state in self.add[1:-1]), "an add that cannot be undone"
        object.__setattr__(self, "behaviours", MappingProxyType(dict(self.behaviours)))

    def after(self, state: ElementState, path: Path) -> ElementState:
        """The state that follows on *path*, which is `add` or `drop`."""
        return path[path.index(state) + 1]

    @property
    def cancel_limit(self) -> ElementState:
        """The last state in which an add can be cancelled: the one before PUBLIC."""
        return self.add[-2]

    def cancel(self, state: ElementState) -> Path:
        """The states that a cancelled add in *state* still goes through: the rest of the drop."""
        return self.drop[self.drop.index(state) + 1 :]

    @property
    def undrop_limit(self) -> ElementState:
        """The last state in which a *drop* can go back to PUBLIC: it is still maintained there.

        An add in the same state cannot: it was never complete.
        """
        kept = ElementState.WRITE_ONLY
        return kept if kept in self.drop and not self.final else ElementState.PUBLIC

    @property
    def cleans(self) -> bool:
        """Whether a delete reorg removes what is left in the last state before ABSENT."""
        return self.holds is not Holds.NOTHING

    def edges(self) -> frozenset[Edge]:
        """Every pair of states that two holders can be in at one time."""
        return frozenset(self._edges())

    def _edges(self) -> Iterator[Edge]:
        yield from pairwise(self.add)
        yield from pairwise(self.drop)
        yield from pairwise((*self.drop[: self.drop.index(self.undrop_limit) + 1], self.drop[0]))
