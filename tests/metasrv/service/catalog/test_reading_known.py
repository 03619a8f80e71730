"""A create takes its snapshot from the leader's catalog, which says what the store says."""

from typing import Any

from keys.catalog.known import known
from keys.commit.txn import snapshot
from keys.key import Key
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.tables import TableInfoKey, TableNameKey, TableRouteKey
from keys.store.kv import Put, Request
from keys.value import encode
from tests.metasrv.api.counted import CountedKv, Counts
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, Server, leader, spec

WAIT = {"prefer": "wait=10"}
SCHEMAS = "/v1/catalogs/main/schemas"
LIFE: tuple[tuple[str, str, Any], ...] = (
    ("POST", SCHEMAS, {"name": "s"}),
    ("POST", f"{SCHEMAS}/s/tables", spec("t")),
    ("POST", f"{SCHEMAS}/s/tables", spec("u")),
    ("POST", f"{SCHEMAS}/s/tables/u/rename", {"new_name": "w"}),
    ("POST", f"{SCHEMAS}/s/tables/w/truncate", None),
    ("DELETE", f"{SCHEMAS}/s/tables/t", None),
    ("DELETE", f"{SCHEMAS}/s?cascade=true", None),
    ("POST", SCHEMAS, {"name": "s"}),
    ("POST", f"{SCHEMAS}/s/tables", spec("t")),
)


async def test_given_a_catalog_that_changes_when_asked_then_it_tells_what_the_store_tells() -> None:
    told = 0
    async with leader() as one:
        for method, path, body in LIFE:
            answer = await one.client.request(method, path, json=body, headers=WAIT)
            assert answer.is_success, answer.text
            for key in candidates(one):
                seen = known(one.state.follower.catalog, key)
                if seen is not None:
                    told += 1
                    stored = await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)
                    assert seen.reads == stored.reads, (path, str(key))

    assert told > 8 * len(LIFE)


def candidates(one: Server) -> list[Key[Any]]:
    """Keys that are there, that were there, and that never were."""
    found: list[Key[Any]] = [SchemaNameKey("main", name) for name in ("public", "s", "none")]
    found += [TableNameKey("main", "s", name) for name in ("t", "u", "w", "none")]
    ids = {*one.state.follower.catalog.tables, *range(1024, 1030)}
    return [*found, *map(TableInfoKey, ids), *map(TableRouteKey, ids)]


async def test_given_a_key_that_is_not_as_the_catalog_says_when_created_then_it_is_read() -> None:
    """As after a restore, which writes every key anew."""
    async with leader(make_kv=CountedKv) as one:
        assert isinstance(one.kv, CountedKv)
        await one.make("warm")
        key = SchemaNameKey("main", "public")
        schema = (await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)).get(key)
        assert isinstance(schema, SchemaInfo)
        again = Request(writes=(Put(bytes(key), encode(schema)),))
        await one.kv.txn(again, deadline_ms=DEADLINE_MS)
        one.kv.counts = Counts()

        answer = await one.client.post(TABLES, json=spec(), headers=WAIT)

        assert answer.status_code == 201, answer.text
        assert one.kv.counts.calls == 4  # submitted, refused, read, committed
