"""What a leader tidies while it leads: whatever is past its time."""

from collections.abc import Collection
from contextlib import suppress
from functools import partial

from base.clock import Clock
from base.errors import Conflict, Unavailable, Unknown
from base.fanout import fan_out
from keys.committer import StaleRead
from keys.kv import Get
from keys.readable import Tell, readable, untold
from keys.records import Idempotency, IdempotencyKey, ProcedureHistory, ProcedureHistoryKey
from keys.scan import scan
from keys.txn import Txn
from metasrv.purging import purge_dropped
from metasrv.term import Term
from metasrv.unreadable import Unreadable

EVERY_MS = 60_000
IDEMPOTENCY_MS = 24 * 3_600_000
HISTORIES_AT_ONCE = 512  # read in one page; a record is some KiB
DELETES_AT_ONCE = 32  # the committer merges them


async def housekeeping(term: Term, clock: Clock) -> None:
    """For ever, once a minute. Every deletion is fenced like any other write.

    Begins once every record has been read: a key may belong to a procedure that is not over.
    """
    await term.ready.wait()
    tell = Unreadable()
    while True:
        await clock.sleep_ms(EVERY_MS)
        term.nodes.leases.forget(clock.mono_ms())
        with suppress(Unavailable, Unknown, Conflict):  # the next minute is soon enough
            await expire_idempotency(term, clock.wall_ms(), tell)
            while await expire_history(term, clock.wall_ms(), tell) == HISTORIES_AT_ONCE:
                pass
        await purge_dropped(term, clock.wall_ms())


async def expire_idempotency(term: Term, now_ms: int, tell: Tell = untold) -> int:
    """Deletes keys older than a day, never before their procedure is over; how many it deleted."""
    living = {procedure for procedure, _ in term.manager.living()}
    items, _ = await scan(term.ports.kv, IdempotencyKey.under(), deadline_ms=term.ports.deadline_ms)
    deleted = 0
    for row in readable(IdempotencyKey, Idempotency, items, tell):
        if row.value.procedure in living or row.value.at_ms + IDEMPOTENCY_MS > now_ms:
            continue
        deleted += await _delete(term, Txn().expecting(row.key, row.revision).delete(row.key))
    return deleted


async def expire_history(term: Term, now_ms: int, tell: Tell = untold) -> int:
    """Deletes the oldest histories past their retention, one page at most; how many it deleted.

    Never one that an idempotency key leads to, nor one of a family that is not over (G17): a parent
    looks for its children, and a child's parent is to be found.
    """
    ports = term.ports
    before_ms = now_ms - term.settings.values.history_retention_ms
    records = [(name, entry.held.record) for name, entry in term.manager.living()]
    kept = {name for name, _ in records} | {one.parent for _, one in records if one.parent}
    old = ProcedureHistoryKey.of_ids_before(before_ms)
    page = await ports.kv.range(
        Get(old.start, old.end, limit=HISTORIES_AT_ONCE), deadline_ms=ports.deadline_ms
    )
    deletions = []
    for row in readable(ProcedureHistoryKey, ProcedureHistory, page.items, tell):
        key, history = row.key, row.value
        if history.finished_at_ms <= before_ms and kept.isdisjoint(_family(key, history)):
            deletions.append(_deletion(key, row.revision, history))
    calls = [partial(_delete, term, txn) for txn in deletions]
    return sum(await fan_out(calls, at_once=DELETES_AT_ONCE))


def _family(key: ProcedureHistoryKey, history: ProcedureHistory) -> Collection[str | None]:
    return (key.procedure, history.last.parent)


def _deletion(key: ProcedureHistoryKey, revision: int, history: ProcedureHistory) -> Txn:
    txn = Txn().expecting(key, revision).delete(key)
    digest = history.last.client.idempotency
    return txn if digest is None else txn.expecting(IdempotencyKey(digest), 0)


async def _delete(term: Term, txn: Txn) -> bool:
    """Whether it was still as it was read; if not, a later look decides again."""
    try:
        await term.committer.commit(txn)
    except StaleRead:
        return False
    return True
