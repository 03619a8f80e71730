"""The databases that an exploration meets, by number, and what can happen to each of them.

Everything is worked out once, by `perform` and `faults`, so that an exploration only looks up.
Several elements of one change have databases of the same rows.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple, TypeAlias

from metasrv_base.elements.graph import Act, Behaviour, Graph, Reorg
from metasrv_base.elements.proof.database import (
    KEYS,
    NO_ROW,
    A,
    B,
    Database,
    ProofFault,
    ProofStatement,
    acts_of,
    databases,
    faults,
    perform,
    statements,
)
from metasrv_base.elements.proof.journey import Direction, ProofChange, States
from metasrv_base.elements.proof.protocol import EntryPut, Protocol
from metasrv_base.elements.states import ElementState

Perform: TypeAlias = Callable[[Graph, Behaviour, Database, ProofStatement], Database | None]
Whole: TypeAlias = tuple[Database, ...]
"""One database for each element of the change."""
Write: TypeAlias = tuple[ProofStatement, ...]
"""One statement, as each element sees it."""


class StatementOutcome(NamedTuple):
    """The effect of one statement."""

    write: Write
    key: int
    after: int
    """The database that it leaves."""
    spoils: frozenset[tuple[int, int]]
    """(task, value that it has read) of a backfill that must look at the row again."""


class Space:
    """The databases of one change. Numbers are given in the order in which they are met."""

    def __init__(self, change: ProofChange, protocol: Protocol, perform: Perform = perform) -> None:
        self._graphs = change.graphs
        self._protocol = protocol
        self._added = [way is Direction.ADD for way in change.ways]
        self._backfilled = [
            number
            for number, graph in enumerate(change.graphs)
            if self._added[number] and graph.reorg is Reorg.BACKFILL
        ]
        self._perform = perform
        self._numbers: dict[Whole, int] = {}
        self._wholes: list[Whole] = []
        self.outcomes = cache(self._outcomes)
        self.faults = cache(self._faults)
        self.put = cache(self._put)
        self.completed = cache(self._completed)
        self.cleaned = cache(self._cleaned)

    def text(self, db: int) -> str:
        return "; ".join(map(str, self._wholes[db]))

    def starts(self, states: States) -> list[int]:
        """Every database that is consistent with *states*, the smallest first."""
        each = [
            [db for db in databases(graph) if not any(faults(graph, state, db))]
            for graph, state in zip(self._graphs, states, strict=True)
        ]
        return [self._number(whole) for whole in product(*each) if _same_rows(whole)]

    def _outcomes(self, states: States, db: int) -> tuple[StatementOutcome, ...]:
        """Returns the effects of the statements of a server that has the elements in *states*;
        refused statements have none."""
        whole = self._wholes[db]
        behaviours = [
            graph.behaviours[state] for graph, state in zip(self._graphs, states, strict=True)
        ]
        each = [
            list(statements(graph, behaviour, part))
            for graph, behaviour, part in zip(self._graphs, behaviours, whole, strict=True)
        ]
        outcomes = []
        for write in product(*each):
            if len({(does.key, does.kind.partition("_")[0]) for does in write}) == 1:
                parts = tuple(map(self._perform, self._graphs, behaviours, whole, write))
                after = tuple(part for part in parts if part is not None)
                if len(after) == len(parts):
                    spoils = frozenset(self._spoils(behaviours, whole, write))
                    outcomes.append(
                        StatementOutcome(write, write[0].key, self._number(after), spoils)
                    )
        return tuple(outcomes)

    def _spoils(
        self, behaviours: Sequence[Behaviour], whole: Whole, write: Write
    ) -> Iterator[tuple[int, int]]:
        """Yields the reads of tasks that a backfill can no longer put without a look at the row.

        Where it compares entries: those whose entry is now newer, or has a tombstone. Where it
        compares rows: all of the row.
        """
        for position, number in enumerate(self._backfilled):
            first, does = position * len(KEYS), write[number]
            if self._protocol.put not in (EntryPut.INGEST, EntryPut.INGEST_ONCE):
                yield from ((first + does.key, value) for value in (A, B))
                continue
            unique, part = self._graphs[number].unique, whole[number]
            acts = acts_of(behaviours[number], does)
            old = part.rows[does.key]
            owned = not unique or all(v != old or k == does.key for v, k in part.held)
            keys = KEYS if unique else (does.key,)
            if Act.PUT in acts:
                yield from ((first + key, does.value) for key in keys)
            if Act.REMOVE in acts and owned and self._protocol.keeps_tombstones:
                yield from ((first + key, old) for key in keys)

    def _faults(self, states: States, db: int) -> tuple[ProofFault, ...]:
        return tuple(
            fault
            for graph, state, part in zip(self._graphs, states, self._wholes[db], strict=True)
            for fault in faults(graph, state, part)
            if not (fault is ProofFault.ORPHAN and self._is_only_cleaned(state))
        )

    def _is_only_cleaned(self, state: ElementState) -> bool:
        """Whether nothing reads or completes the element any more, or yet. Where it is cleaned
        last, it may already be absent for some; what is wrong in an add is seen one state on."""
        passing = (ElementState.ABSENT, ElementState.DELETE_ONLY)
        return state in passing and not self._protocol.cleans_first

    def snapshot(self, db: int) -> tuple[int, ...]:
        """Returns the values that a backfill has to put: by task, the value of the row. A task
        is one row of one index."""
        whole = self._wholes[db]
        return tuple(value for number in self._backfilled for value in whole[number].rows)

    def _put(self, db: int, task: int, value: int) -> int | None:
        """The database with the entry of *task*; None: the key leads to another row."""
        number, key = self._backfilled[task // len(KEYS)], task % len(KEYS)
        whole = self._wholes[db]
        held = whole[number].held
        if self._graphs[number].unique and any(v == value and k != key for v, k in held):
            return None
        return self._with(whole, number, held | {(value, key)})

    def _completed(self, db: int) -> int | None:
        """The database with the default where a value is missing; None: a row breaks what was
        to be validated."""
        for number, graph in enumerate(self._graphs):
            part = self._wholes[db][number]
            if not self._added[number]:
                continue
            if graph.reorg is Reorg.VALIDATE and any(faults(graph, ElementState.PUBLIC, part)):
                return None
            if graph.reorg is Reorg.DEFAULT:
                have = {key for _, key in part.held}
                missing = {(A, key) for key in KEYS if part.rows[key] and key not in have}
                db = self._with(self._wholes[db], number, part.held | missing)
        return db

    def _cleaned(self, db: int, before: States, after: States) -> int:
        """The database without what is stored for elements that will be absent."""
        for number, graph in enumerate(self._graphs):
            ends = before[number] is not after[number] is ElementState.ABSENT
            if ends and graph.cleans:
                db = self._with(self._wholes[db], number, frozenset())
        return db

    def _with(self, whole: Whole, number: int, held: frozenset[tuple[int, int]]) -> int:
        changed = whole[number]._replace(held=held)
        return self._number((*whole[:number], changed, *whole[number + 1 :]))

    def _number(self, whole: Whole) -> int:
        number = self._numbers.setdefault(whole, len(self._wholes))
        if number == len(self._wholes):
            self._wholes.append(whole)
        return number


def _same_rows(whole: Whole) -> bool:
    return len({tuple(row != NO_ROW for row in part.rows) for part in whole}) == 1
