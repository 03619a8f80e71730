"""Chores of a leader while it leads: whatever is past its time is removed."""

from contextlib import suppress

from metasrv.leadership.key_sweep import KeySweep
from metasrv.leadership.log.unnamed_parts import UnnamedParts
from metasrv.leadership.purging import purge_dropped
from metasrv.leadership.retention import Retention
from metasrv.leadership.term import Term
from metasrv.leadership.unreadable import Unreadable
from metasrv_base.clock import Clock
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.errors import Conflict, Unavailable, Unknown

EVERY_MS = 60_000


async def housekeeping(term: Term, clock: Clock) -> None:
    """Deletes keys that have expired, for ever, once a minute. Every deletion is fenced like any
    other write.

    Begins once every record has been read: a history may belong to a procedure that is not over.
    """
    tell = Unreadable()
    retention, sweep = Retention(term, tell), KeySweep(term, tell)
    parts = UnnamedParts(term)
    await term.ready.wait()
    while True:
        await clock.sleep_ms(EVERY_MS)
        await by_turns(term.nodes.leases.forget(clock.mono_ms()))
        for chore in (retention.tidy, sweep.tidy, parts.tidy):
            with suppress(Unavailable, Unknown, Conflict):  # the next minute is soon enough
                await chore(clock.wall_ms())
        await purge_dropped(term, clock.wall_ms())
