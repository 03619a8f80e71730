"""Large versions of a cluster, and what its store must then have."""

from collections.abc import Awaitable, Callable

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.stored_keys import stored_keys
from keys.model.families import FAMILIES
from keys.value import encode
from metasrv.check import rules_log
from metasrv.check.check_input import read_facts
from metasrv.check.rule import violations_of
from tests.keys.catalog.snapshots import Cluster, Term, scenario
from tests.keys.commit.large_changes import BY, SMALL, large, mixed, schema_of_tables
from tests.keys.commit.leading_committer import DEADLINE_MS, Store

TABLES = 4
FIRST_ID = 2_000


async def committed(term: Term, name: str = "big", first_id: int = FIRST_ID) -> None:
    term.committer.sizes = SMALL
    entries = schema_of_tables(name, first_id, TABLES)
    await term.committer.commit(large(term.follower, *entries), procedure=BY)


async def loaded(store: Store) -> Catalog:
    follower = Follower(store, store.clock, deadline_ms=DEADLINE_MS)
    await follower.log.load()
    return follower.catalog


def faults(store: Store, revision: int | None = None) -> list[str]:
    at = revision or store.revision
    facts = read_facts(store._store.scan(b"", b"\0", at), at)
    return [fault.line for fault in violations_of(rules_log.RULES, facts)]


def keys_of(store: Store) -> dict[str, bytes]:
    logged = [family for family in FAMILIES if family.key.is_logged]
    return {
        item.key.decode(): item.value
        for item in store.dump()
        if any(family.claims(item.key) for family in logged)
    }


def written(catalog: Catalog) -> dict[str, bytes]:
    return {str(key): encode(value) for key, value in stored_keys(catalog)}


async def changed(term: Term, first_id: int = FIRST_ID) -> None:
    """Drops, renames and creates in the schema of `committed`: keys are put and deleted."""
    term.committer.sizes = SMALL
    entries = mixed(term.follower.catalog, first_id)
    await term.committer.commit(large(term.follower, *entries), procedure=BY)


def calls_of(
    last: Callable[[Term], Awaitable[None]], *before: Callable[[Term], Awaitable[None]]
) -> int:
    """The requests to the store of *last*, behind others."""
    sent: list[int] = []

    async def main(at: Cluster) -> None:
        term = await at.lead()
        for commit in before:
            await commit(term)
        at.store.sent.clear()
        await last(term)
        sent.append(len(at.store.sent))

    scenario(main)
    return sent[0]
