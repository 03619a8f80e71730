"""Reports on seeds: for one that went wrong, all that is needed to live it again."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tests.sim.checks import catalog_watcher
from tests.sim.clients import index_scans, logs, queues
from tests.sim.clients.steering import RACED
from tests.sim.cluster import faults, outage
from tests.sim.scenario import Outcome

SHOWN_MAX = 12

SOMETIMES = (
    catalog_watcher.TOLD,
    faults.COMPACTED,
    "a write in doubt had been done",
    "a put without space",
    "a node that stopped by its own clock",
    "a procedure ended: succeeded",
    "a change that was cancelled",
    "a change that was paused",
    "a table that was checked",
    "a job that made entries",
    "a read by an index",
    "a region with an index was looked at",
    "a statement of which nobody knows",
    "asked again with the same key",
    "two servers that believe they lead",
    "twice: node",
)
"""Rare states that a handful of long lives must reach: what is never reached is not proved."""

RARELY = (
    "a write of a deposed leader was refused",
    "a write in doubt had not been done",
    "a write that arrives after its leader",
    "a watch broke",
    "a change that was throttled",
    "a column of another type",
    "a drop that was undropped",
    "a row against a constraint",
    "an index that was not valid",
    "a node died at its disk",
    "a job that moved a region",
    "a job that died half way",
    "a procedure ended: rolled_back",
    "a procedure ended: cancelled",
    "a frontend that stopped by its own clock",
    "a statement sent again, through any frontend",
    "a stream broke",
    "twice: rows",
)
"""Rarer ones, of which a long run must have reached each."""
RARELY_OPERATIONS = 7_000
"""So many are a long run: of forty long lives, or of two hundred short ones."""


REACHED: Mapping[str, int] = {
    index_scans.BESIDE_UPDATE: 150,
    index_scans.BESIDE_CHANGE: 150,
    index_scans.BESIDE_TROUBLE: 100,
    index_scans.BESIDE_FAILOVER: 5,
    index_scans.ASKED_AGAIN: 200,
    RACED: 100,
    outage.TWO_DIED: 10,
    outage.THREE_DIED: 3,
    outage.IN_ITS_TURN: 3,
    outage.LEADER_CHANGED: 3,
    outage.GIVEN_UP: 3,
    queues.AT_DEATH: 1_000,
    queues.CANCELLED: 3,
    logs.IN_MEMORY: 10_000,
    logs.REPEATED: 300,
}
"""Counts that the fixed lives must reach of rare events that only some lives contain."""


def never(sometimes: Counter[str], operations: int) -> list[str]:
    """Returns the rare events that a run of so many operations should have reached, and did not."""
    expected = SOMETIMES + (RARELY if operations >= RARELY_OPERATIONS else ())
    return [what for what in expected if not sometimes[what]]


def shown(outcome: Outcome) -> str:
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    yield f"{outcome.life}, trace {outcome.digest}, {outcome.virtual_s:.0f} s of virtual time"
    yield f"faults: {', '.join(outcome.faults)}"
    yield f"again: {outcome.life.command}; for ever: a line in tests/sim/corpus.py"
    yield from outcome.violations[:SHOWN_MAX]
    left = len(outcome.violations) - SHOWN_MAX
    if left > 0:
        yield f"... and {left} more"
