"""What a leader tidies while it leads: whatever is past its time."""

from contextlib import suppress

from base.clock import Clock
from base.errors import Unavailable
from keys.committer import StaleRead
from keys.records import Idempotency, IdempotencyKey
from keys.scan import scan
from keys.txn import Txn
from keys.value import decode
from metasrv.purging import purge_dropped
from metasrv.term import Term

EVERY_MS = 60_000
IDEMPOTENCY_MS = 24 * 3_600_000


async def housekeeping(term: Term, clock: Clock) -> None:
    """For ever, once a minute. Every deletion is fenced like any other write.

    Begins once every record has been read: a key may belong to a procedure that is not over.
    """
    await term.ready.wait()
    while True:
        await clock.sleep_ms(EVERY_MS)
        term.nodes.leases.forget(clock.mono_ms())
        with suppress(Unavailable):
            await expire_idempotency(term, clock.wall_ms())
        await purge_dropped(term, clock.wall_ms())


async def expire_idempotency(term: Term, now_ms: int) -> int:
    """Deletes keys older than a day, never before their procedure is over; how many it deleted."""
    living = {procedure for procedure, _ in term.manager.living()}
    items, _ = await scan(term.ports.kv, IdempotencyKey.under(), deadline_ms=term.ports.deadline_ms)
    deleted = 0
    for item in items:
        key = IdempotencyKey.parse(item.key)
        known = decode(Idempotency, item.value, key=str(key))
        if known.procedure in living or known.at_ms + IDEMPOTENCY_MS > now_ms:
            continue
        try:
            await term.committer.commit(Txn().expecting(key, item.mod_revision).delete(key))
        except StaleRead:
            continue
        deleted += 1
    return deleted
