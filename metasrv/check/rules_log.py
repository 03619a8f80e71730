"""Rules about the catalog log: dense, ordered by time, written once, equal to the stored keys."""

from collections.abc import Iterator

from keys.catalog.stored_keys import stored_keys
from keys.model.log import CatalogUpdateKey, CatalogVersionKey
from keys.model.tables import DatanodeTableKey
from keys.value import StoredModel, encode
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule


def dense(facts: CheckInput) -> Iterator[CheckFault]:
    """A follower stops at a gap, which can never be filled."""
    stored = {i.key.version for i in facts.items if isinstance(i.key, CatalogUpdateKey)}
    if not facts.has(CatalogVersionKey()):
        yield CheckFault(str(CatalogVersionKey()), "missing", f"version {max(stored, default=1)}")
        return
    version = facts.version()
    last = version.version if version else max(stored, default=0)
    for missing in sorted(set(range(1, max(stored, default=0) + 1)) - stored):
        yield CheckFault(str(CatalogUpdateKey(missing)), "missing", f"each of 1 to {last}")
    if version and max(stored, default=0) != last:
        state = f"version {last}, and the last update is {max(stored, default=0)}"
        yield CheckFault(str(CatalogVersionKey()), state, "the version of the last update")


def times(facts: CheckInput) -> Iterator[CheckFault]:
    """Reads as of a time need rising commit times."""
    log, last = facts.log(), 0
    for version in sorted(log):
        at_ms = log[version].at_ms
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
    told = {
        str(key): value
        for key, value in stored_keys(facts.fold.catalog)
        if not isinstance(key, DatanodeTableKey)
    }
    stored = {
        item.name: item
        for item in facts.items
        if item.key is not None
        and item.key.is_logged
        and not isinstance(item.key, DatanodeTableKey)
    }
    for name, value in told.items():
        if name not in stored:
            yield CheckFault(name, "missing", f"as the log says: {_shown(value)}")
        elif stored[name].value is not None and stored[name].value != value:
            actual = stored[name].raw.value.decode("utf-8", "backslashreplace")
            yield CheckFault(name, actual, f"as the log says: {_shown(value)}")
    for name in stored.keys() - told.keys():
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

    Not judged where updates are missing, since their revisions are unknown.
    """
    if any(dense(facts)):
        return
    commits = {
        item.raw.create_revision for item in facts.items if isinstance(item.key, CatalogUpdateKey)
    }
    for item in facts.items:
        if isinstance(item.key, CatalogVersionKey):
            if _is_closed(facts):
                continue
        elif item.key is None or not item.key.is_logged:
            continue
        revision = item.raw.mod_revision
        if revision not in commits:
            state = f"last written at revision {revision}, without an update of the log"
            yield CheckFault(item.name, state, "written together with an update of the log")


def _is_closed(facts: CheckInput) -> bool:
    """Whether the leader has closed a time later than the last update."""
    stored, log = facts.version(), facts.log()
    return stored is not None and stored.at_ms > log[stored.version].at_ms


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
)
