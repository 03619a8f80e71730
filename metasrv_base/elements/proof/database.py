"""Databases of two rows and one element, and what a statement does to them.

A database is small enough to write down every one there is, and large enough for each known
anomaly: two keys, two values. `perform` executes the data of `metasrv_base.elements.graphs`, as the
frontend does; `faults` is what F1 calls consistency (Rae et al., VLDB 2013, section 3).
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import product
from typing import NamedTuple, TypeAlias

from metasrv_base.elements.graph import Act, Behaviour, Graph, Holds, Reorg
from metasrv_base.elements.states import ElementState

KEYS = (0, 1)
NO_ROW = 0
A, B = 1, 2
"""Values of a row. A row is seen only through its element:

- an index, or a unique constraint: its values are a and b;
- a column: nobody ever gave it a value (A: it reads as the default), or a user did (B);
- another constraint: it satisfies it (A) or breaks it (B);
- a table: it is a row of another table, to which a row of the element can belong (A).
"""

SHOWN = "-abcd0"
"""Characters that stand for values; those after b belong to `mirrored`."""

Pair: TypeAlias = tuple[int, int]
"""(value, key): an entry, the value of a column, or a row of the table that is the element."""


class Database(NamedTuple):
    rows: tuple[int, ...]
    """Value by key; NO_ROW: there is no row."""
    held: frozenset[Pair]
    """Data that the element has stored."""

    def __str__(self) -> str:
        rows = [f"{key}={SHOWN[row]}" for key, row in enumerate(self.rows) if row]
        held = [f"{SHOWN[value]}->{key}" for value, key in sorted(self.held)]
        return f"rows {' '.join(rows) or 'none'}; stored {' '.join(held) or 'nothing'}"


class ProofStatement(NamedTuple):
    """One write of one row. `kind` names the field of `Behaviour` that says what it does."""

    kind: str
    key: int
    value: int
    """Value of the row after the statement."""

    def __str__(self) -> str:
        verb = self.kind.replace("_", " ")
        return f"{verb} row {self.key}" + (f" = {SHOWN[self.value]}" if self.value else "")


OUTSIDE = "insert_outside"
"""A statement outside the element: it inserts a row to which rows of a table may belong."""


class ProofFault(StrEnum):
    """A way in which a database contradicts a schema."""

    ORPHAN = "orphan"
    """Something is stored whose row is gone or has another value. (F1: rules 1 and 5)"""
    LEFT_OVER = "left over"
    """Something is stored for an element that is absent. (3 and 7)"""
    MISSING = "missing"
    """The element is visible, and a row has nothing stored in it. (2 and 4)"""
    BROKEN = "broken"
    """The constraint is visible, and a row breaks it. (6)"""
    LOST = "lost"
    """A value that a user wrote in a visible column is gone, or is replaced by the default."""


def databases(graph: Graph) -> Iterator[Database]:
    """Every database that can be stored, the smallest first."""
    rows_of_all = product(_values(graph), repeat=len(KEYS))
    every = [Database(rows, held) for rows in rows_of_all for held in _held(graph)]
    sane = [db for db in every if graph.holds is not Holds.VALUES or _has_what_was_given(db)]
    yield from sorted(sane, key=lambda db: (sum(map(bool, db.rows)) + len(db.held), str(db)))


def _values(graph: Graph) -> tuple[int, ...]:
    if graph.alone:
        return (A,)
    return (NO_ROW, A) if graph.holds is Holds.ROWS else (NO_ROW, A, B)


def _has_what_was_given(db: Database) -> bool:
    return all((B, key) in db.held for key, row in enumerate(db.rows) if row == B)


def _held(graph: Graph) -> Iterator[frozenset[Pair]]:
    pairs = list(product((A,) if graph.holds is Holds.ROWS else (A, B), KEYS))
    for chosen in product((False, True), repeat=len(pairs)):
        held = frozenset(pair for pair, pairs_held in zip(pairs, chosen, strict=True) if pairs_held)
        if _can_be_stored(graph, held):
            yield held


def _can_be_stored(graph: Graph, held: frozenset[Pair]) -> bool:
    if graph.holds is Holds.NOTHING:
        return not held
    if graph.holds is Holds.VALUES:  # a row has one value
        return len({key for _, key in held}) == len(held)
    return not graph.unique or len({value for value, _ in held}) == len(held)


def statements(graph: Graph, behaviour: Behaviour, db: Database) -> Iterator[ProofStatement]:
    """Yields the statements that users can issue if their schema has the element in a state with
    *behaviour*."""
    for key, row in enumerate(db.rows):
        if graph.holds is Holds.ROWS:
            yield from _of_a_table(graph, db, key)
        elif row == NO_ROW:
            yield from (ProofStatement("insert", key, value) for value in _given(graph, behaviour))
        else:
            yield ProofStatement("update_elsewhere", key, row)
            for value in _given(graph, behaviour):
                if value != row and (graph.holds is not Holds.VALUES or value == B):
                    yield ProofStatement("update", key, value)
            yield ProofStatement("delete", key, NO_ROW)


def _given(graph: Graph, behaviour: Behaviour) -> tuple[int, ...]:
    """Values that a statement can give: of a column only where it is visible."""
    return (A, B) if behaviour.visible or graph.holds is not Holds.VALUES else (A,)


def _of_a_table(graph: Graph, db: Database, key: int) -> Iterator[ProofStatement]:
    """Yields statements on a table's own rows and, unless the table is alone, on the rows that
    these belong to."""
    if db.rows[key] == NO_ROW:
        yield ProofStatement(OUTSIDE, key, A)
    else:
        if (A, key) not in db.held:
            yield ProofStatement("insert", key, A)
        yield ProofStatement("delete", key, A if graph.alone else NO_ROW)


def perform(
    graph: Graph, behaviour: Behaviour, db: Database, does: ProofStatement
) -> Database | None:
    """The database after a statement; None if an act refuses it."""
    key, old, new = does.key, db.rows[does.key], does.value
    held = set(db.held)
    kept = {pair for pair in held if pair[1] == key}
    if graph.holds is Holds.VALUES and does.kind.startswith("update"):
        held -= kept  # the row is written anew, with what an act puts into it
    for act in acts_of(behaviour, does):
        match act:
            case Act.CHECK if _refuses(graph, db, does):
                return None
            case Act.REMOVE if graph.holds is Holds.ENTRIES:
                held.discard((old, key))
            case Act.REMOVE:
                held -= kept
            case Act.KEEP:
                held |= kept
            case Act.FILL if not any(pair[1] == key for pair in held):
                held.add((A, key))
            case Act.PUT:
                if graph.unique:  # one key, one entry
                    held -= {(new, other) for other in KEYS}
                held.add((new, key))
    rows = tuple(new if each == key else row for each, row in enumerate(db.rows))
    return Database(rows, frozenset(held))


def acts_of(behaviour: Behaviour, does: ProofStatement) -> tuple[Act, ...]:
    acts: tuple[Act, ...] = getattr(behaviour, does.kind, ())
    return acts


def _refuses(graph: Graph, db: Database, does: ProofStatement) -> bool:
    if not graph.unique:
        return does.value == B
    pairs_held = (
        db.held if graph.holds is Holds.ENTRIES else {(v, k) for k, v in enumerate(db.rows)}
    )
    return any(value == does.value and key != does.key for value, key in pairs_held)


def faults(graph: Graph, state: ElementState, db: Database) -> Iterator[ProofFault]:
    """Yields the ways in which *db* contradicts a schema with the element in *state*; none: it
    is consistent."""
    if any(db.rows[key] not in _owners(graph, value) for value, key in db.held):
        yield ProofFault.ORPHAN
    if state is ElementState.ABSENT and db.held:
        yield ProofFault.LEFT_OVER
    if graph.behaviours[state].visible:
        yield from _unfit(graph, db)


def _owners(graph: Graph, value: int) -> tuple[int, ...]:
    """Values of a row to which a stored *value* can belong."""
    return (A, B) if graph.holds is Holds.VALUES else (value,)


def _unfit(graph: Graph, db: Database) -> Iterator[ProofFault]:
    """Yields the faults that matter only once the element is read."""
    rows = [(value, key) for key, value in enumerate(db.rows) if value != NO_ROW]
    have = {key for _, key in db.held}
    if graph.holds is Holds.ENTRIES and not db.held.issuperset(rows):
        yield ProofFault.MISSING
    if graph.reorg is Reorg.DEFAULT and not have.issuperset(key for _, key in rows):
        yield ProofFault.MISSING
    if graph.holds is Holds.VALUES and any(
        (value, key) not in db.held for value, key in rows if value == B or key in have
    ):
        yield ProofFault.LOST
    if graph.holds is Holds.NOTHING and _broken(graph, [value for value, _ in rows]):
        yield ProofFault.BROKEN


def _broken(graph: Graph, values: list[int]) -> bool:
    return len(set(values)) < len(values) if graph.unique else B in values
