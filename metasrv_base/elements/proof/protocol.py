"""The rules of an online change, a field each: a mutant is a protocol with one of them off."""

from dataclasses import dataclass
from enum import StrEnum


class EntryPut(StrEnum):
    """The way in which the reorg puts the entry of a row that it has read."""

    INGEST = "ingest"
    """Put with the version of the row it was read from: an entry or tombstone of the same key
    that is newer wins, and the row is then read again."""
    INGEST_ONCE = "ingest once"
    """The same, but what lost is taken for done."""
    REREAD = "re-read"
    """Put if the row has not changed; else read it again."""
    SKIP = "skip"
    """Put if the row has not changed; else count it as done."""
    BLIND = "blind"
    """Put, whether or not the row has changed."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """docs/protocols.md P6, and what may happen meanwhile. The product keeps every rule."""

    floor: bool = True
    """Before the next version is published, and before the reorg reads, the region refuses every
    write and read of an older version, for ever."""
    drains: bool = True
    """A server acknowledges a version when none of its transactions uses an older one."""
    rewaits: bool = True
    """A new owner waits for the newest version as if nobody had acknowledged it."""
    fences_owner: bool = True
    """Publications of a deposed owner are refused."""
    fences_reorg: bool = True
    """Puts of a reorg whose change was cancelled are refused: by the floor, or by the number of
    the job."""
    reads_after_drain: bool = True
    """The reorg reads when nobody uses an older version, and not as soon as one is published."""
    finishes_reorg: bool = True
    """Nothing becomes public before its reorg is done."""
    cleans_after_drain: bool = True
    """The delete reorg begins when nobody uses an older version."""
    cleans_first: bool = False
    """The delete reorg ends before the element is absent. Else it follows, once nobody uses an
    older version: what it removes lies under an id that never comes back."""
    keeps_tombstones: bool = True
    """The tombstone of an entry stays until the reorg is in."""
    put: EntryPut = EntryPut.INGEST
    expires: bool = True
    """A server may fall silent, be given up by the owner, and go on with what it knows."""
    lets_go: bool = True
    """A server may let a transaction go while its last write is on the way to the region."""


PRODUCT = Protocol()
# Nobody falls silent and nothing is late: what waiting alone is good for.
WAITS_ALONE = Protocol(
    floor=False, cleans_first=True, put=EntryPut.REREAD, expires=False, lets_go=False
)
