"""Variants of the graphs, each with the outcome that is known of it."""

from dataclasses import replace

from metasrv_base.elements.graphs import (
    ABSENT,
    DELETE_ONLY,
    INDEX,
    PUBLIC,
    UNIQUE_INDEX,
    WRITE_ONLY,
)
from metasrv_base.elements.proof.database import ProofFault
from metasrv_base.elements.proof.journey import Direction
from metasrv_base.elements.proof.protocol import WAITS_ALONE, EntryPut
from tests.metasrv_base.elements.proof.faulty import Case, always_rewriting, removing_blindly

ADD, DROP = Direction.ADD, Direction.DROP
ORPHAN, MISSING, LEFT_OVER = ProofFault.ORPHAN, ProofFault.MISSING, ProofFault.LEFT_OVER
SKIP = replace(WAITS_ALONE, put=EntryPut.SKIP)
NO_DELETE_ONLY = replace(INDEX, add=(ABSENT, WRITE_ONLY, PUBLIC), drop=(PUBLIC, WRITE_ONLY, ABSENT))
NO_WRITE_ONLY = replace(
    INDEX, add=(ABSENT, DELETE_ONLY, PUBLIC), drop=(PUBLIC, DELETE_ONLY, ABSENT)
)

KNOWN: dict[str, Case] = {
    "conditional reorg that reads again and leaves the row as it is": Case(
        INDEX, ADD, WAITS_ALONE, None
    ),
    "skip on conflict, writers always rewrite": Case(always_rewriting(), ADD, SKIP, None),
    "skip on conflict, untouched entries are left": Case(INDEX, ADD, SKIP, MISSING),
    "read again, writers always rewrite": Case(always_rewriting(), ADD, WAITS_ALONE, None),
    "blind put, and so put if absent": Case(
        INDEX, ADD, replace(WAITS_ALONE, put=EntryPut.BLIND), ORPHAN
    ),
    "acknowledged without draining": Case(
        INDEX, ADD, replace(WAITS_ALONE, drains=False), MISSING, first=ORPHAN
    ),
    "no delete-only": Case(NO_DELETE_ONLY, ADD, WAITS_ALONE, ORPHAN),
    "snapshot before all know, skip": Case(
        always_rewriting(), ADD, replace(SKIP, reads_after_drain=False), MISSING
    ),
    "snapshot before all know, read again": Case(
        INDEX, ADD, replace(WAITS_ALONE, reads_after_drain=False), MISSING
    ),
    "a silent server, fenced": Case(
        INDEX, ADD, replace(WAITS_ALONE, expires=True, floor=True), None
    ),
    "a silent server, not fenced": Case(INDEX, ADD, replace(WAITS_ALONE, expires=True), ORPHAN),
    "unique, checked by the row": Case(UNIQUE_INDEX, ADD, WAITS_ALONE, None),
    "unique, removed blindly": Case(UNIQUE_INDEX, ADD, WAITS_ALONE, MISSING, does=removing_blindly),
    "a new owner does not wait again": Case(
        INDEX, ADD, replace(WAITS_ALONE, rewaits=False), ORPHAN
    ),
    "drop": Case(INDEX, DROP, WAITS_ALONE, None),
    "drop, cleaned before all know": Case(
        INDEX, DROP, replace(WAITS_ALONE, cleans_after_drain=False), LEFT_OVER, first=ORPHAN
    ),
    "drop, no write-only": Case(NO_WRITE_ONLY, DROP, WAITS_ALONE, MISSING),
    "drop, no delete-only": Case(NO_DELETE_ONLY, DROP, WAITS_ALONE, ORPHAN, first=MISSING),
    "drop, acknowledged without draining": Case(
        INDEX, DROP, replace(WAITS_ALONE, drains=False), LEFT_OVER, first=MISSING
    ),
}
