"""Submissions that a record cannot hold: items of the state are written as parts before it.

The record adopts the parts, in the transaction that submits it. Parts of a submission that does not
come to be are deleted by a chore of the leader (metasrv/leadership/log/unnamed_parts.py).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from keys.catalog.catalog import Catalog
from keys.commit.committer import Committer
from keys.commit.staging import MEMBERS
from keys.model.log import StagedRef
from keys.model.records import Lock
from metasrv_base.concurrency.run_in_thread import run_in_thread
from procedures.context import Ports
from procedures.engine.submit import SubmitRequest
from procedures.machine import Kind, ProcedureState

NO_PARTS = StagedRef(batch="", parts=0, size_bytes=0, digest="")
"""Stands for parts that are not written yet."""
ITEMS_AT_ONCE = 64
"""Items whose locks one turn of the event loop finds: some ms."""


class Locks(NamedTuple):
    own: tuple[Lock, ...]
    """The locks of the state as it is submitted."""
    kept: tuple[Lock, ...]
    """The locks that the record will have."""


@dataclass(slots=True)
class Stager:
    """The stager of one term."""

    ports: Ports
    committer: Committer
    under_way: set[str] = field(default_factory=set)
    """Procedures whose parts are being written, or whose submission is on its way."""

    def is_large(self, kind: Kind[Any], state: ProcedureState, submission: SubmitRequest) -> bool:
        """Whether the record cannot hold the state and what the client sent, and need not."""
        if kind.staging is None:
            return False
        limit, size = self.ports.limits.record_bytes, 0
        for item in kind.staging.items(state):  # of thousands the first tell already
            size += len(item.model_dump_json())
            if size > limit:
                return True
        size = len(state.model_dump_json()) + len(submission.client.model_dump_json())
        return size > limit

    async def locks(self, kind: Kind[Any], state: ProcedureState) -> Locks:
        """Returns the locks of a large state. Raises Refused("ddl-too-large")."""
        work = partial(_locks, kind, state, self.ports.applied())
        return await run_in_thread(is_short(kind, state), work)

    @contextmanager
    def working_on(self, procedure: str) -> Iterator[None]:
        self.under_way.add(procedure)
        try:
            yield
        finally:
            self.under_way.discard(procedure)

    async def staged(
        self, kind: Kind[Any], state: ProcedureState, submission: SubmitRequest
    ) -> tuple[ProcedureState, SubmitRequest]:
        """The state and the request as the record holds them. Raises as `Committer.commit`."""
        assert kind.staging is not None
        items = kind.staging.items(state)
        parts = await self.committer.stage(submission.procedure, MEMBERS, items)
        work = partial(_small, kind, state, submission, parts, self.ports.applied())
        return await run_in_thread(is_short(kind, state), work)


def is_short(kind: Kind[Any], state: ProcedureState) -> bool:
    """Whether the event loop may do in one turn what each item of *state* needs."""
    assert kind.staging is not None
    return len(kind.staging.items(state)) <= ITEMS_AT_ONCE


def _locks(kind: Kind[Any], state: ProcedureState, catalog: Catalog) -> Locks:
    assert kind.staging is not None
    small = kind.staging.in_parts(state, NO_PARTS, catalog)
    return Locks(kind.locks(state), kind.locks(small))


def _small(
    kind: Kind[Any],
    state: ProcedureState,
    submission: SubmitRequest,
    parts: StagedRef,
    catalog: Catalog,
) -> tuple[ProcedureState, SubmitRequest]:
    """The state and the request as the record holds them, once the items are in *parts*."""
    assert kind.staging is not None
    small: ProcedureState = kind.staging.in_parts(state, parts, catalog)
    client = submission.client
    cut = client.model_copy(update={"statement": cut_statement(client.statement)})
    return small, replace(submission, client=cut)


def cut_statement(statement: dict[str, Any]) -> dict[str, Any]:
    """A statement without its body, of which the length and a digest stay."""
    body = json.dumps(statement.get("body"), separators=(",", ":"), ensure_ascii=False)
    raw = body.encode(errors="replace")
    return {**statement, "body": {"bytes": len(raw), "sha256": sha256(raw).hexdigest()}}
