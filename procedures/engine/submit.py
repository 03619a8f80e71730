"""A submission made durable: record and idempotency key in one fenced transaction."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from keys.commit.committer import Committer, StaleRead
from keys.commit.txn import Stamp, Txn, snapshot
from keys.model.records import ClientRequirements as Client
from keys.model.records import (
    Idempotency,
    IdempotencyKey,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedureRecord,
)
from metasrv_base.errors import Refused
from metasrv_base.values.frozen import frozen
from procedures.context import Ports
from procedures.engine import record_transitions
from procedures.engine.runner import StoredRecord
from procedures.engine.sizes import record_must_fit
from procedures.machine import Kind, ProcedureState

_UNKNOWN = Stamp(catalog_version=None, submission=0, at_ms=0)


@frozen
class SubmitRequest:
    """A request to run a kind. `client.idempotency` None: sent without a key."""

    procedure: str
    """The id it will have; made before, so that what it touches can be named after it."""
    client: Client
    fingerprint: str
    """Digest of method, path and canonical body; compared if the idempotency key is in use."""
    parent: str | None = None
    overtakes: frozenset[str] = frozenset()
    """Filled in by the manager, which knows who waits."""


@frozen
class Submitted:
    """`replayed`: the key was known, and this is the procedure it belongs to."""

    procedure: str
    replayed: bool


@dataclass(frozen=True, slots=True)
class Submitter:
    ports: Ports
    committer: Committer

    async def submit(
        self, kind: Kind[Any], state: ProcedureState, request: SubmitRequest
    ) -> tuple[Submitted, StoredRecord | None]:
        """The procedure and, if it is new, its record as stored.

        Raises Refused("idempotency-key-reused") where the key belongs to another request,
        Refused("ddl-too-large") where its end might not fit a transaction, and Unknown where the
        term ended before the store answered: ask again with the same key.
        """
        first = record_transitions.begin(
            kind, state, request.client, _UNKNOWN, parent=request.parent
        )
        record_must_fit(first)
        record, history = ProcedureKey(request.procedure), ProcedureHistoryKey(request.procedure)
        digest = request.client.idempotency

        @lru_cache(maxsize=1)
        def make(stamp: Stamp) -> ProcedureRecord:
            stood_ms = self.ports.gate.stood_ms(stamp.at_ms)
            return record_transitions.submitted(
                kind, first, stamp, tuple(sorted(request.overtakes)), stood_ms
            )

        txn = Txn().expecting(record, 0).expecting(history, 0).put_stamped(record, make)
        if digest is not None:
            key = IdempotencyKey(digest)
            txn = txn.expecting(key, 0).put_stamped(
                key,
                lambda stamp: Idempotency(
                    procedure=request.procedure, fingerprint=request.fingerprint, at_ms=stamp.at_ms
                ),
            )
        try:
            committed = await self.committer.commit(txn, procedure=request.procedure)
        except StaleRead:
            if digest is None:
                return Submitted(request.procedure, replayed=True), None
            earlier = await self.known(request)
            if earlier is None:  # the key has just expired
                return await self.submit(kind, state, request)
            return earlier, None
        held = StoredRecord(request.procedure, make(committed.stamp), committed.revision)
        return Submitted(request.procedure, replayed=False), held

    async def known(self, request: SubmitRequest) -> Submitted | None:
        """The procedure that this idempotency key belongs to already.

        Raises Refused("idempotency-key-reused").
        """
        digest = request.client.idempotency
        if digest is None:
            return None
        key = IdempotencyKey(digest)
        stored = await snapshot(self.ports.kv, key, deadline_ms=self.ports.deadline_ms)
        record = stored.get(key)
        if record is None:
            return None
        if record.fingerprint != request.fingerprint:
            raise Refused("idempotency-key-reused", procedure_id=record.procedure)
        return Submitted(record.procedure, replayed=True)
