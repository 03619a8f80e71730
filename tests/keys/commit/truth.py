"""Was every client told the truth, and did each batch keep the rules? Asked of the store's history.

Written without the committer's own idea of a clash: what both got wrong alike would not be seen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from keys.commit.committer import Committed
from keys.model.catalogs import SchemaNameKey
from keys.model.cluster import Sequence as Counter
from keys.model.cluster import SequenceKey
from keys.model.log import (
    CatalogUpdate,
    CatalogUpdateKey,
    CatalogVersion,
    CatalogVersionKey,
    SchemaCreated,
    SchemaDropped,
)
from keys.store.kv import Kv, Put, Request, Watched
from keys.store.mvcc import in_range
from keys.value import decode
from metasrv_base.errors import Unknown
from tests.keys.commit.clients import COUNTER, DEADLINE_MS, Told, World

LAST = b"__z/last"


async def history(kv: Kv, start_revision: int) -> list[Watched]:
    """Everything that was written from *start_revision* on."""
    last = await kv.txn(Request(writes=(Put(LAST, b""),)), deadline_ms=DEADLINE_MS)
    found: list[Watched] = []
    async for watched in kv.watch(b"__", b"__~", start_revision=start_revision):
        found.append(watched)
        if watched.revision >= last.revision:
            return found
    raise AssertionError("a watch never ends")


def judged(world: World, log: Sequence[Watched]) -> list[str]:
    """Returns the faults; each line begins with the name of the check that found it."""
    made = _done(world.told, log)
    return [
        *_told(world.told, made),
        *_numbered(world.told, log),
        *_apart(world.told, made),
        *_unchanged(world.told, made, log),
        *_each_revision(log),
        *_counted(world, log),
        *(f"listeners: {heard}" for heard in world.heard if heard != sorted(set(heard))),
    ]


def _done(told: Sequence[Told], log: Sequence[Watched]) -> dict[bytes, int]:
    """Markers of the changes that took effect, with the revision of each."""
    forgotten = {bytes(one.marker) for one in told if one.forgets}
    return {
        event.key: watched.revision
        for watched in log
        for event in watched.events
        if (event.value is None) is (event.key in forgotten)
    }


def _told(told: Sequence[Told], made: dict[bytes, int]) -> Iterator[str]:
    """Done is done, at that revision; not done is never done, however late a copy arrives.

    Of what is found removed, after a doubt, a store tells no more than that it was by then.
    """
    for one in told:
        found = made.get(bytes(one.marker))
        by_then = one.forgets and found is not None
        match one.outcome:
            case Committed(revision=revision) if by_then and revision >= (found or 0):
                pass
            case Committed(revision=revision) if revision != found:
                yield f"truth: {one.number} was told done at {revision}, and stands at {found}"
            case None if found is not None:
                yield f"truth: {one.number} was told not done, and stands at {found}"


def _numbered(told: Sequence[Told], log: Sequence[Watched]) -> Iterator[str]:
    """The version that a client was told is its own."""
    updates = {update.version: update for _, update in _updates(log)}
    for one in told:
        if isinstance(one.outcome, Committed) and one.txn.entries:
            version = one.outcome.stamp.catalog_version
            assert version is not None
            if updates[version].procedure != str(one.number):
                yield f"versions: {one.number} was told {version}, which is another's"


def _apart(told: Sequence[Told], made: dict[bytes, int]) -> Iterator[str]:
    """Checks that of two changes at one revision neither writes what the other reads or writes."""
    by_revision: dict[int, list[Told]] = {}
    for one in told:
        if bytes(one.marker) in made:
            by_revision.setdefault(made[bytes(one.marker)], []).append(one)
    for revision, members in by_revision.items():
        for one, other in combinations(members, 2):
            for writer, reader in ((one, other), (other, one)):
                touched = [
                    key
                    for key in writer.txn.writes
                    if key in reader.txn.expect
                    or key in reader.txn.writes
                    or any(start <= key < end for start, end in reader.txn.ranges)
                ]
                if touched:
                    yield f"apart: {one.number} and {other.number} at {revision}: {touched}"


def _unchanged(
    told: Sequence[Told], made: dict[bytes, int], log: Sequence[Watched]
) -> Iterator[str]:
    """No key that a change wanted unchanged was put between its look and its commit."""
    for one in told:
        done = made.get(bytes(one.marker), 0)
        for (start, end), since in one.txn.unchanged.items():
            for watched in log:
                puts = [event.key for event in watched.events if event.value is not None]
                if since < watched.revision < done and any(start <= key < end for key in puts):
                    yield f"unchanged: {one.number}, since {since}: put at {watched.revision}"


@dataclass
class _Told:
    """Schemas that stand, and that the log tells, after each revision."""

    stored: set[str] = field(default_factory=set)
    logged: set[str] = field(default_factory=set)
    version: int = 0
    at_ms: int = 0

    def moved(self, watched: Watched) -> Iterator[str]:
        declared = self.version
        for event in watched.events:
            if in_range(event.key, *SchemaNameKey.under()):
                name = SchemaNameKey.parse(event.key).schema
                (self.stored.discard if event.value is None else self.stored.add)(name)
            if event.key == bytes(CatalogVersionKey()) and event.value is not None:
                declared = decode(CatalogVersion, event.value, key="version").version
        for _, update in _updates([watched]):
            if update.version != self.version + 1 or update.at_ms <= self.at_ms:
                yield f"dense: {update.version} after {self.version}, or its time"
            self.version, self.at_ms = update.version, update.at_ms
            self._apply(update)
        if declared != self.version:
            yield f"dense: version {declared} is declared, the log is at {self.version}"

    def _apply(self, update: CatalogUpdate) -> None:
        for entry in update.entries:
            if isinstance(entry, SchemaCreated):
                self.logged.add(entry.info.name)
            elif isinstance(entry, SchemaDropped):
                self.logged.discard(entry.name)


def _each_revision(log: Sequence[Watched]) -> Iterator[str]:
    """At each, the log tells what stands, its versions are dense, and no child is an orphan."""
    state = _Told()
    for watched in log:
        for text in state.moved(watched):
            yield f"{text}, at {watched.revision}"
        if state.logged != state.stored:
            yield f"log: it tells {state.logged}, {state.stored} stand at {watched.revision}"
        parents = {name.rpartition("_")[0] for name in state.stored} - {""}
        if not parents <= state.stored:
            yield f"orphans: {parents - state.stored} is gone at {watched.revision}"


def _updates(log: Sequence[Watched]) -> Iterator[tuple[int, CatalogUpdate]]:
    for watched in log:
        found = [
            event for event in watched.events if in_range(event.key, *CatalogUpdateKey.under())
        ]
        for event in sorted(found, key=lambda event: event.key):
            assert event.value is not None
            yield watched.revision, decode(CatalogUpdate, event.value, key="update")


def _counted(world: World, log: Sequence[Watched]) -> Iterator[str]:
    """No increment is lost: the counter is as high as the changes of it that stand."""
    key = bytes(COUNTER)
    values = [event.value for watched in log for event in watched.events if event.key == key]
    made = _done(world.told, log)
    stands = sum(1 for one in world.told if key in one.txn.writes and bytes(one.marker) in made)
    last = decode(Counter, values[-1], key="counter").next if values and values[-1] else 0
    if last != stands:
        yield f"counter: {last}, and {stands} increments stand"


def doubts(world: World, log: Sequence[Watched]) -> dict[str, int]:
    """Counts rare events, so that a test can require that each happened."""
    made = _done(world.told, log)
    unknown = [one for one in world.told if isinstance(one.outcome, Unknown)]
    stands = sum(1 for one in unknown if bytes(one.marker) in made)
    shared = sum(1 for watched in log if _markers(watched) > 1)
    return {
        "told unknown, and done": stands,
        "told unknown, and not done": len(unknown) - stands,
        "told not done": sum(1 for one in world.told if one.outcome is None),
        "several in one transaction": shared,
        "several terms": int(world.terms > 1),
        **{fate.value: 1 for fate in world.net.seen},
    }


def _markers(watched: Watched) -> int:
    start, end = SequenceKey.under()
    return sum(1 for e in watched.events if start <= e.key < end and e.key != bytes(COUNTER))
