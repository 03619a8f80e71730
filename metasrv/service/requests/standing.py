"""A request for which nothing is to be done, kept under its idempotency key as a procedure that
is over.

So the same key gets the same answer later, another request under it is refused, and both go with
the history (G11). Without a key nothing is stored.
"""

import asyncio
from functools import lru_cache

from keys.commit.txn import Stamp, Txn
from keys.model.records import (
    Idempotency,
    IdempotencyKey,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
)
from metasrv.leadership.term import Term
from metasrv.service.requests.ddl_request import AlreadyAbsent, AlreadySatisfied
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Unknown
from procedures.steps.requirements import not_applied

STOOD_AT = "stood_at"  # of its result: the catalog version at which it stood


async def keep(
    state: ServerState,
    term: Term,
    context: RequestContext,
    no_change: AlreadySatisfied | AlreadyAbsent,
    *,
    deadline_ms: int,
) -> None:
    """Durable when it returns. Raises StaleRead where the key is known already, Unknown where the
    store is silent, Unavailable("storage-full")."""
    digest = context.digest()
    if digest is None:
        return
    term.committer.must_have_space()
    procedure, version = state.ids.procedure_id(), state.follower.catalog.version
    history, key = ProcedureHistoryKey(procedure), IdempotencyKey(digest)

    @lru_cache(maxsize=1)
    def make(stamp: Stamp) -> ProcedureHistory:
        return _over(context, no_change, version, stamp)

    txn = Txn().expecting(history, 0).put_stamped(history, make)
    txn = txn.expecting(key, 0).put_stamped(
        key,
        lambda stamp: Idempotency(
            procedure=procedure, fingerprint=context.fingerprint, at_ms=stamp.at_ms
        ),
    )
    try:
        async with asyncio.timeout(deadline_ms / 1000):
            committed = await term.committer.commit(txn, procedure=procedure)
    except TimeoutError as error:
        raise Unknown("outcome-unknown", reason="the store has not answered") from error
    term.tally.ended(make(committed.stamp))


def stood_at(history: ProcedureHistory) -> int | None:
    """The catalog version at which the request needed no change; None: it is a procedure."""
    version = (history.result or {}).get(STOOD_AT)
    return version if isinstance(version, int) else None


def _over(
    context: RequestContext,
    no_change: AlreadySatisfied | AlreadyAbsent,
    version: int,
    stamp: Stamp,
) -> ProcedureHistory:
    kind, resource = no_change.kind, no_change.resource
    index = None if isinstance(no_change, AlreadyAbsent) else no_change.index
    last = ProcedureRecord(
        kind=kind.name,
        kind_format=kind.state.format,
        step=kind.first,
        phase=ProcedurePhase.FORWARD,
        state={} if index is None else {"operations": [{"name": index}]},
        submission=stamp.submission,
        locks=(),
        resource=resource,
        client=context.client(),
        submitted_at_ms=stamp.at_ms,
        deadline_at_ms=stamp.at_ms,
    )
    if isinstance(no_change, AlreadyAbsent):
        result = not_applied(resource)
    else:
        result = {f"{resource.type}_id": int(resource.id), "name": resource.name}
    return ProcedureHistory(
        outcome=ProcedureOutcome.SUCCEEDED,
        last=last,
        result={**result, STOOD_AT: version},
        finished_at_ms=stamp.at_ms,
        catalog_version=None,
    )
