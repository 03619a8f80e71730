"""Rules about the catalog log and its snapshots: dense, ordered, written once, equal to the keys.

The log begins above the oldest snapshot; of updates up to it, which are being deleted, none need
be there.
"""

from collections.abc import Iterator
from hashlib import sha256

from keys.catalog.catalog import Catalog
from keys.catalog.stored_keys import stored_keys
from keys.model.log import CatalogUpdate, CatalogUpdateKey, CatalogVersionKey
from keys.model.snapshot.snapshots import SnapshotPartKey, SnapshotVersionKey
from keys.model.staging.parts import LargeUpdateKey
from keys.model.tables import DatanodeTableKey
from keys.value import StoredModel, encode
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule
from metasrv_base.errors import Corrupt

SNAPSHOTS = str(SnapshotVersionKey())


def dense(facts: CheckInput) -> Iterator[CheckFault]:
    """A follower stops at a gap, which can never be filled."""
    stored = {i.key.version for i in facts.items if isinstance(i.key, CatalogUpdateKey)}
    if not facts.has(CatalogVersionKey()):
        yield CheckFault(str(CatalogVersionKey()), "missing", f"version {max(stored, default=1)}")
        return
    version, floor = facts.version(), facts.floor
    newest = max(stored, default=floor)
    last = version.version if version else newest
    for missing in sorted(set(range(floor + 1, newest + 1)) - stored):
        yield CheckFault(
            str(CatalogUpdateKey(missing)), "missing", f"each of {floor + 1} to {last}"
        )
    if version and max(newest, floor) != last:
        state = f"version {last}, and the last update is {newest}"
        yield CheckFault(str(CatalogVersionKey()), state, "the version of the last update")


def times(facts: CheckInput) -> Iterator[CheckFault]:
    """Reads as of a time need rising commit times."""
    log, last, floor = facts.log(), 0, facts.floor
    held = {ref.version: ref.at_ms for ref in facts.snapshots()}
    for version in sorted(log):
        at_ms = log[version].at_ms
        if version > floor:
            last = max(last, held.get(floor, 0))
        if at_ms <= last:
            yield CheckFault(str(CatalogUpdateKey(version)), f"at {at_ms}", f"later than {last}")
        last = max(last, at_ms)
    stored = facts.version()
    update = log.get(stored.version) if stored else None
    if stored and update and stored.at_ms < update.at_ms:
        yield CheckFault(
            str(CatalogVersionKey()), f"at {stored.at_ms}", f"at {update.at_ms} or later"
        )


def foldable(facts: CheckInput) -> Iterator[CheckFault]:
    if facts.fold.broken_at is not None:
        right = "entries that can follow the update before"
        yield CheckFault(str(facts.fold.broken_at), facts.fold.error or "", right)


def same_story(facts: CheckInput) -> Iterator[CheckFault]:
    """Servers read only the log, so it must lead to the stored keys.

    The reverse index is held against the stored routes (`table-reverse`).
    """
    if facts.fold.catalog is None:
        return
    stored = {
        item.name: item
        for item in facts.items
        if item.key is not None
        and item.key.is_logged
        and not isinstance(item.key, DatanodeTableKey)
    }
    left = set(stored)
    for key, value in stored_keys(facts.fold.catalog):
        if isinstance(key, DatanodeTableKey):
            continue
        name, item = str(key), stored.get(str(key))
        left.discard(name)
        if item is None:
            yield CheckFault(name, "missing", f"as the log says: {_shown(value)}")
        elif item.is_readable and item.value != value:
            actual = item.raw.value.decode("utf-8", "backslashreplace")
            yield CheckFault(name, actual, f"as the log says: {_shown(value)}")
    for name in left:
        yield CheckFault(name, "the log has no such key, or has deleted it", "no such key")


def _shown(value: StoredModel) -> str:
    return encode(value).decode()


def written_once(facts: CheckInput) -> Iterator[CheckFault]:
    for item in facts.items:
        if isinstance(item.key, CatalogUpdateKey):
            created, changed = item.raw.create_revision, item.raw.mod_revision
            if created != changed:
                state = f"written at revision {created}, and again at {changed}"
                yield CheckFault(item.name, state, "written once, in its own transaction")


def one_transaction(facts: CheckInput) -> Iterator[CheckFault]:
    """A key without an update of the log was not written by a leader's transaction (G2, G5).

    Not judged where updates or what belongs to them are missing, since revisions are unknown; for
    the same reason not of keys that were last written before the oldest snapshot.
    """
    if any(dense(facts)) or any(parts_there(facts)):
        return
    commits = {
        item.raw.create_revision for item in facts.items if isinstance(item.key, CatalogUpdateKey)
    }
    begins = max((ref.revision for ref in facts.snapshots()[:1]), default=0)
    copying = (*_copying(facts), (begins, _begun_behind(facts)))
    for item in facts.items:
        if isinstance(item.key, CatalogVersionKey):
            if _is_closed(facts):
                continue
        elif item.key is None or not item.key.is_logged:
            continue
        revision = item.raw.mod_revision
        is_copied = any(start < revision <= end for start, end in copying)
        if revision > begins and revision not in commits and not is_copied:
            state = f"last written at revision {revision}, without an update of the log"
            yield CheckFault(item.name, state, "written together with an update of the log")


def _copying(facts: CheckInput) -> Iterator[tuple[int, int]]:
    """Yields the revisions between which the keys of each large version were written: that of the
    version, and that of the last of them."""
    for item in facts.items:
        if isinstance(item.key, LargeUpdateKey):
            update = facts.by_name.get(str(CatalogUpdateKey(item.key.version)))
            if update is not None:
                yield update.raw.create_revision, item.raw.mod_revision


def _begun_behind(facts: CheckInput) -> int:
    """A revision at which all keys of the oldest snapshot's version were written. What says when a
    large version was copied is deleted with its update; but its leader commits nothing else until
    then, neither a part of the snapshot nor the next update."""
    floor = facts.floor
    if floor == 0:
        return 0
    later = [
        item.raw.create_revision
        for item in facts.items
        if (isinstance(item.key, CatalogUpdateKey) and item.key.version > floor)
        or (isinstance(item.key, SnapshotPartKey) and item.key.version == floor)
    ]
    return min(later, default=0) - 1


def parts_there(facts: CheckInput) -> Iterator[CheckFault]:
    """A server that reads such an update needs all of its entries."""
    for item in facts.items:
        key = item.key
        if not isinstance(key, CatalogUpdateKey):
            continue
        update = item.value
        if not isinstance(update, CatalogUpdate):
            continue
        if update.staged is None or key.version <= facts.floor:
            continue
        if item.error is not None:
            yield CheckFault(item.name, item.error, "all parts that it names")
        large = facts.get(LargeUpdateKey(key.version))
        if large is None or large.staged != update.staged:
            yield CheckFault(str(LargeUpdateKey(key.version)), "missing", "as its update says")
        elif not large.is_copied and facts.fold.catalog is not None:
            newest = facts.version()
            if newest is not None and newest.version != key.version:
                state = f"{large.copied} of {large.keys} keys are written"
                yield CheckFault(str(LargeUpdateKey(key.version)), state, "all, before the next")


def _is_closed(facts: CheckInput) -> bool:
    """Whether the leader has closed a time later than the last update."""
    stored, log = facts.version(), facts.log()
    if stored is None:
        return False
    update = log.get(stored.version)
    return update is None or stored.at_ms > update.at_ms


def listed(facts: CheckInput) -> Iterator[CheckFault]:
    """Parts that the key does not name are of a snapshot that is being written, or deleted."""
    stored = facts.get(SnapshotVersionKey())
    if stored is None:
        return
    versions = [ref.version for ref in stored.kept]
    if not versions or versions != sorted(set(versions)):
        yield CheckFault(SNAPSHOTS, f"versions {versions}", "one version or more, rising")
        return
    head = facts.get(CatalogVersionKey())
    if head is not None and versions[-1] > head.version:
        state = f"a snapshot of version {versions[-1]}, and the catalog is at {head.version}"
        yield CheckFault(SNAPSHOTS, state, "snapshots of versions that were committed")


def whole(facts: CheckInput) -> Iterator[CheckFault]:
    """A server that starts from a snapshot with a part missing cannot serve."""
    for ref in facts.snapshots():
        try:
            facts.snapshot_catalog(ref)
        except Corrupt as error:
            yield CheckFault(str(SnapshotPartKey(ref.version, 0)), str(error), "all of its parts")


def matches_log(facts: CheckInput) -> Iterator[CheckFault]:
    """A snapshot that lacks an update would make servers disagree for ever."""
    for ref in facts.snapshots():
        by_log = facts.fold.passed.get(ref.version)
        if by_log is None:
            continue
        try:
            held = facts.snapshot_catalog(ref)
        except Corrupt:
            continue
        right, actual = _content(by_log), _content(held)
        wrong = sorted(
            name for name in right.keys() | actual.keys() if right.get(name) != actual.get(name)
        )
        if wrong or held.at_ms != by_log.at_ms:
            state = f"differs from the log at version {ref.version}: {', '.join(wrong[:3])}"
            yield CheckFault(str(SnapshotPartKey(ref.version, 0)), state, "what the log leads to")


def _content(catalog: Catalog) -> dict[str, object]:
    """Its keys with digests of their values, and the versions of its tables, which no key has.

    Revisions are not compared: a restore writes log and snapshots at other ones.
    """
    content: dict[str, object] = {
        str(key): sha256(encode(value)).digest() for key, value in stored_keys(catalog)
    }
    for table_id, table in catalog.tables.items():
        content[f"version of table {table_id}"] = table.catalog_version
    return content


RULES = (
    CheckRule("log-dense", 2, "the log has every version up to the catalog version", dense),
    CheckRule("log-times", 2, "commit times rise from version to version", times),
    CheckRule("log-folds", 2, "each update can be applied after the one before", foldable),
    CheckRule("log-tells", 2, "the log leads to exactly the stored keys", same_story),
    CheckRule("log-once", 2, "an update is written once and never changed", written_once),
    CheckRule(
        "log-together",
        2,
        "metadata is written in one transaction with its update of the log",
        one_transaction,
    ),
    CheckRule("log-parts", 2, "an update whose entries are in parts has all of them", parts_there),
    CheckRule("snapshot-listed", 2, "snapshots are of committed versions, in order", listed),
    CheckRule("snapshot-whole", 2, "each snapshot that is kept has all its parts", whole),
    CheckRule(
        "snapshot-tells", 2, "each snapshot is the catalog that the log leads to", matches_log
    ),
)
