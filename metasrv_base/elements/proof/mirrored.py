"""A column that replaces another, and that other: what rows have in both, and what is read of them.

The value of the new column is that of the old one, converted; a row that lacks it reads as that.
A row is written whole and deleted whole: what a statement does not put into it is not in it. Rows
do not know of each other, so a fault of many is a fault of one, and one is all there is.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeAlias

from metasrv_base.elements.graph import Act, Behaviour, Graph
from metasrv_base.elements.proof.database import (
    NO_ROW,
    A,
    B,
    Database,
    Pair,
    ProofFault,
    ProofStatement,
    acts_of,
)
from metasrv_base.elements.proof.journey import States
from metasrv_base.elements.proof.space import Space, StatementOutcome, Whole
from metasrv_base.elements.states import ElementState

KEY = 0
NEW, OLD = 0, 1
"""Indexes of the new and the old column; each has a database with the same rows."""
C, D = 3, 4
NULL = 5
"""Values of a row besides those that both columns can have: C has no conversion (only the old one
can say it), D none back. NULL is what is read where there is nothing to convert."""
FORMS = ((A, B, D), (A, B, C))
"""Values that each of the two columns can represent."""

Behaviours: TypeAlias = Sequence[Behaviour]


class Mirrored(Space):
    """The databases of a change of type."""

    def starts(self, states: States) -> list[int]:
        """The new column is in no row; the old one has what its users gave."""
        return [self._number(_given(value)) for value in (NO_ROW, A, B, C)]

    def _outcomes(self, states: States, db: int) -> tuple[StatementOutcome, ...]:
        behaviours = behaviours_of(self._graphs, states)
        whole = self._wholes[db]
        outcomes = []
        for does in statements(behaviours, whole):
            after = perform(behaviours, whole, does)
            if after is not None:
                outcomes.append(
                    StatementOutcome((does,), does.key, self._number(after), frozenset())
                )
        return tuple(outcomes)

    def _faults(self, states: States, db: int) -> tuple[ProofFault, ...]:
        return tuple(faults(self._graphs, states, self._wholes[db]))

    def _completed(self, db: int) -> int | None:
        """Returns *db* with its backfill done; None if a row has a value that has no conversion."""
        return None if any(value == C for value, _ in self._wholes[db][OLD].held) else db

    def _cleaned(self, db: int, before: States, after: States) -> int:
        """Cleans up for a column that will be absent: its data is removed, or stored as the
        converted value if the row has no other."""
        new, old = self._wholes[db]
        if before[NEW] is not after[NEW] is ElementState.ABSENT:
            new = new._replace(held=frozenset())
        if before[OLD] is not after[OLD] is ElementState.ABSENT:
            read = {(reading((new, old), NEW), KEY)} if new.rows[KEY] else ()
            new, old = new._replace(held=frozenset(read)), old._replace(held=frozenset())
        return self._number((new, old))


def joined(graph: Graph, state: ElementState) -> States:
    """*state* of one of the two, with the state of the other that goes with it."""
    other = ElementState.WRITE_ONLY if state is ElementState.PUBLIC else ElementState.PUBLIC
    return (other, state) if graph.final else (state, other)


def behaviours_of(graphs: Sequence[Graph], states: States) -> Behaviours:
    return [graph.behaviours[state] for graph, state in zip(graphs, states, strict=True)]


def wholes() -> Iterator[Whole]:
    """Every pair of values that a row of any value can have."""
    yield _given(NO_ROW)
    stored = product((NO_ROW, NULL, *FORMS[NEW]), (NO_ROW, NULL, *FORMS[OLD]))
    for value, (new, old) in product((A, B, C, D), stored):
        yield Database((value,), _only(new)), Database((value,), _only(old))


def statements(behaviours: Behaviours, whole: Whole) -> Iterator[ProofStatement]:
    """Users give what the visible one of the two can say."""
    form = FORMS[NEW if behaviours[NEW].visible else OLD]
    (row,) = whole[NEW].rows
    if row == NO_ROW:
        yield from (ProofStatement("insert", KEY, value) for value in form)
    else:
        yield ProofStatement("update_elsewhere", KEY, row)
        yield from (ProofStatement("update", KEY, value) for value in form if value != row)
        yield ProofStatement("delete", KEY, NO_ROW)


def perform(behaviours: Behaviours, whole: Whole, does: ProofStatement) -> Whole | None:
    """The row after a statement; None if it is refused, or must wait for the next version."""
    new = _stored(behaviours[NEW], whole, NEW, does)
    old = _stored(behaviours[OLD], whole, OLD, does)
    if new is None or old is None:
        return None
    return Database((does.value,), _only(new)), Database((does.value,), _only(old))


def _stored(behaviour: Behaviour, whole: Whole, which: int, does: ProofStatement) -> int | None:
    """Returns the value stored for the new row in one of the two columns; NO_ROW: none; None: an
    act refuses the statement."""
    value = NO_ROW
    for act in acts_of(behaviour, does):
        match act:
            case Act.CHECK | Act.MIRROR if does.value not in FORMS[which]:
                return None
            case Act.KEEP:
                value = reading(whole, which)
            case Act.PUT | Act.MIRROR:
                value = does.value
    return value


def reading(whole: Whole, which: int) -> int:
    """Returns the value of the row read from one of the two columns."""
    for value, _ in whole[which].held:
        return value
    value = NULL if which == OLD else reading(whole, OLD)
    return value if value in FORMS[which] else NULL


def faults(graphs: Sequence[Graph], states: States, whole: Whole) -> Iterator[ProofFault]:
    (row,) = whole[NEW].rows
    for which, behaviour in enumerate(behaviours_of(graphs, states)):
        if states[which] is ElementState.ABSENT and whole[which].held:
            yield ProofFault.LEFT_OVER
        if row != NO_ROW and behaviour.visible and reading(whole, which) != row:
            yield ProofFault.LOST


def _given(value: int) -> Whole:
    """Returns a row with a value that users of the old column gave it."""
    return Database((value,), frozenset()), Database((value,), _only(value))


def _only(value: int) -> frozenset[Pair]:
    return frozenset({(value, KEY)} if value else ())
