"""Mutants that that table lacks: the floor, the ingest, undo, columns, constraints and tables."""

from dataclasses import dataclass, replace

from metasrv_base.elements.graph import Act, Behaviour, Graph
from metasrv_base.elements.graphs import (
    ABSENT,
    CHANGED_COLUMN,
    DELETE_ONLY,
    INDEX,
    NOT_NULL,
    OPTIONAL_COLUMN,
    PUBLIC,
    REFERRED_TABLE,
    REPLACED_COLUMN,
    REQUIRED_COLUMN,
    TABLE,
    UNIQUE_CONSTRAINT,
    UNIQUE_INDEX,
    WRITE_ONLY,
)
from metasrv_base.elements.proof.database import ProofFault
from metasrv_base.elements.proof.journey import Direction
from metasrv_base.elements.proof.protocol import WAITS_ALONE, EntryPut, Protocol
from metasrv_base.elements.states import ElementState
from tests.metasrv_base.elements.proof.faulty import Case, behaving

ADD, DROP = Direction.ADD, Direction.DROP
ORPHAN, LEFT_OVER, MISSING, BROKEN, LOST = ProofFault
FLOOR = replace(WAITS_ALONE, floor=True)
INGEST = replace(WAITS_ALONE, put=EntryPut.INGEST)
DIRECT = (ABSENT, PUBLIC)
SHORT = (ABSENT, DELETE_ONLY, PUBLIC)
STATEMENTS = ("insert", "update", "update_elsewhere", "delete")
CLEANED_LAST = replace(WAITS_ALONE, cleans_first=False)
EARLY = replace(WAITS_ALONE, reads_after_drain=False)


@dataclass(frozen=True, slots=True)
class UndroppedTooLate(Graph):
    @property
    def undrop_limit(self) -> ElementState:
        return DELETE_ONLY


def undropped_too_late(graph: Graph) -> Graph:
    fields = ("name", "holds", "behaviours", "add", "drop", "reorg", "unique", "alone")
    return UndroppedTooLate(*(getattr(graph, name) for name in fields))


def writing_only(graph: Graph, **acts: tuple[Act, ...]) -> Graph:
    """*graph* with other acts in WRITE_ONLY."""
    now = graph.behaviours[WRITE_ONLY]
    does = {name: acts.get(name, getattr(now, name)) for name in STATEMENTS}
    return behaving(graph, WRITE_ONLY=Behaviour(**does))


def type_change(
    found: ProofFault | None,
    protocol: Protocol = FLOOR,
    *,
    changed: Graph = CHANGED_COLUMN,
    replaced: Graph = REPLACED_COLUMN,
) -> Case:
    return Case(changed, ADD, protocol, found, beside=replaced)


OURS: dict[str, Case] = {
    "the floor alone, nobody drains": Case(INDEX, ADD, replace(FLOOR, drains=False), None),
    "the floor alone, a new owner does not wait": Case(
        INDEX, DROP, replace(FLOOR, rewaits=False), None
    ),
    "a pin is let go with a write on its way": Case(
        INDEX, ADD, replace(WAITS_ALONE, lets_go=True), MISSING
    ),
    "a pin is let go with a write on its way, fenced": Case(
        INDEX, ADD, replace(FLOOR, lets_go=True), None
    ),
    "a deposed owner publishes": Case(
        INDEX, ADD, replace(WAITS_ALONE, fences_owner=False), MISSING
    ),
    "a reorg puts after its change was cancelled": Case(
        INDEX, ADD, replace(WAITS_ALONE, fences_reorg=False), LEFT_OVER, first=ORPHAN
    ),
    "public before the reorg is done": Case(
        INDEX, ADD, replace(WAITS_ALONE, finishes_reorg=False), MISSING
    ),
    "ingest by version": Case(INDEX, ADD, INGEST, None),
    "ingest by version, unique": Case(UNIQUE_INDEX, ADD, INGEST, None),
    "ingest, a tombstone was merged away": Case(
        INDEX, ADD, replace(INGEST, keeps_tombstones=False), ORPHAN
    ),
    "ingest, unique, what lost is not looked at again": Case(
        UNIQUE_INDEX, ADD, replace(INGEST, put=EntryPut.INGEST_ONCE), MISSING
    ),
    "ingest, what lost is not looked at again": Case(
        INDEX, ADD, replace(INGEST, put=EntryPut.INGEST_ONCE), None
    ),
    "write-only is read": Case(
        behaving(INDEX, WRITE_ONLY=INDEX.behaviours[PUBLIC]), ADD, WAITS_ALONE, MISSING
    ),
    "no write-only": Case(replace(INDEX, add=SHORT, reorg=INDEX.reorg), ADD, WAITS_ALONE, MISSING),
    "an update in delete-only leaves the old entry": Case(
        behaving(INDEX, DELETE_ONLY=Behaviour(delete=(Act.REMOVE,))), ADD, WAITS_ALONE, ORPHAN
    ),
    "delete-only puts entries": Case(
        behaving(INDEX, DELETE_ONLY=INDEX.behaviours[WRITE_ONLY]), ADD, WAITS_ALONE, ORPHAN
    ),
    "write-only does not see updates": Case(
        writing_only(INDEX, update=()), ADD, WAITS_ALONE, ORPHAN
    ),
    "write-only does not see inserts": Case(
        writing_only(INDEX, insert=()), ADD, WAITS_ALONE, MISSING
    ),
    "unique, not checked in write-only": Case(
        writing_only(UNIQUE_INDEX, insert=(Act.PUT,)), ADD, WAITS_ALONE, MISSING
    ),
    "drop, absent first and cleaned then": Case(INDEX, DROP, CLEANED_LAST, None),
    "drop, absent first and cleaned at once": Case(
        INDEX, DROP, replace(CLEANED_LAST, cleans_after_drain=False), None
    ),
    "undropped from delete-only": Case(undropped_too_late(INDEX), DROP, WAITS_ALONE, MISSING),
    "a column undropped, whose values were not kept": Case(
        writing_only(OPTIONAL_COLUMN, update_elsewhere=()), DROP, WAITS_ALONE, LOST
    ),
    "a column undropped, that the default had replaced": Case(
        writing_only(REQUIRED_COLUMN, update_elsewhere=(Act.FILL,)), DROP, WAITS_ALONE, LOST
    ),
    "a required column without write-only": Case(
        replace(REQUIRED_COLUMN, add=SHORT), ADD, WAITS_ALONE, MISSING
    ),
    "a required column completed before all know": Case(REQUIRED_COLUMN, ADD, EARLY, MISSING),
    "an optional column directly": Case(
        replace(OPTIONAL_COLUMN, add=DIRECT), ADD, WAITS_ALONE, ORPHAN
    ),
    "a constraint directly": Case(replace(NOT_NULL, add=DIRECT), ADD, WAITS_ALONE, BROKEN),
    "a constraint validated before all know": Case(NOT_NULL, ADD, EARLY, BROKEN),
    "uniqueness validated before all know": Case(UNIQUE_CONSTRAINT, ADD, EARLY, BROKEN),
    "write-only does not check": Case(
        writing_only(NOT_NULL, insert=(), update=()), ADD, WAITS_ALONE, BROKEN
    ),
    "a type changed directly": type_change(LOST, changed=replace(CHANGED_COLUMN, add=DIRECT)),
    "a type changed, write-only does not check": type_change(
        LOST, changed=behaving(CHANGED_COLUMN, WRITE_ONLY=Behaviour())
    ),
    "a type changed, write-only checks inserts alone": type_change(
        LOST, changed=writing_only(CHANGED_COLUMN, update=())
    ),
    "a type changed, rows validated before all know": type_change(LOST, EARLY),
    "a type changed, acknowledged without draining": type_change(
        LOST, replace(WAITS_ALONE, drains=False)
    ),
    "a type changed, what replaces it is lost by other updates": type_change(
        LOST,
        changed=behaving(
            CHANGED_COLUMN,
            PUBLIC=replace(CHANGED_COLUMN.behaviours[PUBLIC], update_elsewhere=()),
        ),
    ),
    "a type changed, the replaced column goes at once": type_change(
        LOST, replaced=replace(REPLACED_COLUMN, add=DIRECT, drop=DIRECT[::-1])
    ),
    "a type changed, inserts leave the replaced column out": type_change(
        LOST, replaced=writing_only(REPLACED_COLUMN, insert=())
    ),
    "a type changed, updates keep the replaced value": type_change(
        LOST, replaced=writing_only(REPLACED_COLUMN, update=(Act.KEEP,))
    ),
    "a type changed, other updates forget the replaced value": type_change(
        LOST, replaced=writing_only(REPLACED_COLUMN, update_elsewhere=())
    ),
    "a type changed, the replaced column cleaned before all know": type_change(
        LOST, replace(WAITS_ALONE, cleans_after_drain=False)
    ),
    "a table directly, to which nothing refers": Case(TABLE, ADD, WAITS_ALONE, None),
    "a table directly, to which another refers": Case(
        replace(REFERRED_TABLE, add=DIRECT), ADD, WAITS_ALONE, ORPHAN
    ),
}
