"""The keys of the newest version that an earlier leader has left, found when a term begins."""

from keys.catalog.follower import Follower
from keys.catalog.known import CatalogByKey
from keys.commit.change import copies_of
from keys.commit.copying import KeysLeft, read_uncopied
from keys.store.kv import Compare, ReadableStore
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.errors import Corrupt


async def keys_left(
    kv: ReadableStore, fence: Compare, follower: Follower, *, deadline_ms: int
) -> KeysLeft | None:
    """The keys that are to be written before anything else is. *follower*: it has applied the
    newest version. Raises NotLeader, and Corrupt where the log does not tell them.

    No snapshot is newer than the version before: the leader makes none while keys are written.
    """
    stored = await read_uncopied(kv, fence, deadline_ms=deadline_ms)
    if stored is None:
        return None
    version = stored.key.version
    before, update = follower.at(version - 1), follower.update(version)
    if before is None or update is None or follower.catalog.version != version:
        raise Corrupt(key=str(stored.key), found=follower.catalog.version)
    copies = await by_turns(copies_of(update.entries, CatalogByKey(before)))
    return stored.with_copies(copies)
