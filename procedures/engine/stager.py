"""Submissions that a record cannot hold: items of the state are written as parts before it.

The record adopts the parts, in the transaction that submits it. Parts of a submission that does not
come to be are deleted by a chore of the leader (metasrv/leadership/log/unnamed_parts.py).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from keys.commit.committer import Committer
from keys.commit.staging import MEMBERS
from keys.model.log import StagedRef
from keys.model.records import Lock
from procedures.context import Ports
from procedures.engine.submit import SubmitRequest
from procedures.machine import Kind, ProcedureState

NO_PARTS = StagedRef(batch="", parts=0, size_bytes=0, digest="")
"""Stands for parts that are not written yet."""


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
        size = len(state.model_dump_json()) + len(submission.client.model_dump_json())
        return size > self.ports.limits.record_bytes

    def locks(self, kind: Kind[Any], state: ProcedureState) -> tuple[Lock, ...]:
        """The locks that the record will have. Raises Refused("ddl-too-large")."""
        assert kind.staging is not None
        return kind.locks(kind.staging.in_parts(state, NO_PARTS, self.ports.applied()))

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
        small: ProcedureState = kind.staging.in_parts(state, parts, self.ports.applied())
        client = submission.client
        cut = client.model_copy(update={"statement": cut_statement(client.statement)})
        return small, replace(submission, client=cut)


def cut_statement(statement: dict[str, Any]) -> dict[str, Any]:
    """A statement without its body, of which the length and a digest stay."""
    body = json.dumps(statement.get("body"), separators=(",", ":"), ensure_ascii=False)
    raw = body.encode(errors="replace")
    return {**statement, "body": {"bytes": len(raw), "sha256": sha256(raw).hexdigest()}}
