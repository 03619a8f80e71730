"""Versions that memory no longer holds: rebuilt once, shared, few at once, and true."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from keys.catalog.catalog import Catalog
from keys.catalog.rebuild import Rebuild
from keys.catalog.snapshot_codec import parts_of
from keys.model.log import CatalogUpdateKey
from keys.model.snapshot.snapshots import (
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
)
from keys.store.kv import Get, KeyPage, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.service.state import old_versions
from metasrv.service.state.old_versions import REBUILDS_MAX
from metasrv_base.clock import Clock
from metasrv_base.schema.instants import instant_text
from tests.keys.catalog.snapshots import ref_of
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, Server, follower_of, leader, spec
from tests.metasrv.service.catalog.old import Begins, forget

WAIT = {"Prefer": "wait=10"}


class CountedKv(MemoryKv):
    """Counts the reads of the log; while `gate` is shut they wait. `hidden` is not in it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.log_reads = 0
        self.begun = asyncio.Semaphore(0)
        self.hidden = b""
        self.gate = asyncio.Event()
        self.gate.set()

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        if get.key.startswith(bytes(CatalogUpdateKey.under().start)):
            self.log_reads += 1
            self.begun.release()
            await self.gate.wait()
        page = await super().range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )
        return replace(page, items=tuple(item for item in page.items if item.key != self.hidden))


def counted(one: Server) -> CountedKv:
    assert isinstance(one.kv, CountedKv)
    return one.kv


async def get(one: Server, path: str, status: int = 200) -> Any:
    answer = await one.client.get(path)
    assert answer.status_code == status, answer.text
    return answer.json()


async def post(one: Server, path: str, body: Any) -> None:
    answer = await one.client.post(path, json=body, headers=WAIT)
    assert answer.is_success, answer.text


async def test_given_a_name_that_was_reused_then_each_version_has_the_table_of_then() -> None:
    async with leader() as one:
        first = (await one.make("t"))["id"]
        at_first, first_ms = one.version, one.state.follower.catalog.at_ms
        await post(one, f"{TABLES}/t/rename", {"new_name": "u"})
        second = (await one.make("t", primary_key=["carrier"], columns=KEYED))["id"]
        at_second = one.version
        await one.client.delete(f"{TABLES}/t", headers=WAIT)
        at_none = one.version
        third = (await one.make("t"))["id"]
        at_third = one.version
        await one.make("last")
        forget(one)

        found = [
            (await get(one, f"{TABLES}/t?as_of=version:{version}"))["id"]
            for version in (at_third, at_first, at_second)
        ]
        gone = await get(one, f"{TABLES}/t?as_of=version:{at_none}", 404)
        listed = await get(one, f"{TABLES}?as_of=version:{at_second}")
        body = await get(one, f"{TABLES}/t?as_of=version:{at_second}")
        by_id = await get(one, f"/v1/tables/{first}?as_of=version:{at_second}")
        route = await get(one, f"{TABLES}/t/route?as_of=version:{at_second}")
        at_time = await get(one, f"{TABLES}/t?as_of={instant_text(first_ms, 'ms')}")

        assert found == [third, first, second]
        assert gone["code"] == "table-not-found"
        assert [(table["name"], table["id"]) for table in listed["tables"]] == [
            ("t", second),
            ("u", first),
        ]
        assert body["primary_key"] == ["carrier"]
        assert (by_id["name"], route["table_id"], at_time["id"]) == ("u", second, first)


LARGE = 1 << 20
COMMENT = {"op": "set_options", "options": {"comment": "changed"}}
KEYED = [{"name": "carrier", "type": "string", "nullable": False}]


async def test_given_a_version_then_it_is_rebuilt_once_for_all_who_ask() -> None:
    async with leader(make_kv=CountedKv) as one:
        await one.make("t")
        version = one.version
        await one.make("u")
        forget(one)
        kv = counted(one)
        kv.begun, before = asyncio.Semaphore(0), kv.log_reads
        path = f"{TABLES}?as_of=version:{version}"

        kv.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(get(one, path)) for _ in range(20)]
            await kv.begun.acquire()
            kv.gate.set()
        bodies = [task.result() for task in asking]
        again = await get(one, path)

        assert kv.log_reads == before + 1
        assert {len(body["tables"]) for body in (*bodies, again)} == {1}


async def test_given_readers_of_many_old_versions_then_few_are_rebuilt_at_once() -> None:
    async with leader(make_kv=CountedKv) as one:
        for number in range(12):
            await one.make(f"t{number}")
        first, last = 2, one.version - 1
        forget(one)
        kv = counted(one)
        kv.begun = asyncio.Semaphore(0)
        kv.gate.clear()
        paths = [f"{TABLES}?as_of=version:{version}" for version in range(first, last + 1)]

        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(one.client.get(path)) for path in paths]
            refused = await _done(asking, len(paths) - REBUILDS_MAX)
            for _ in range(REBUILDS_MAX):
                await kv.begun.acquire()
            assert kv.begun.locked()
            kv.gate.set()
        answers = [task.result() for task in asking]

        assert {answer.status_code for answer in refused} == {503}
        assert {answer.json()["code"] for answer in refused} == {"not-ready"}
        assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
        assert [answer.status_code for answer in answers].count(200) == REBUILDS_MAX
        for number, path in enumerate(paths):
            assert len((await get(one, path))["tables"]) == number + 1


async def test_given_rebuilds_that_are_large_together_then_the_bound_holds_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kept ones make room for the rest. Of two that have no room together one is told to
    ask again, and one that has none by itself is refused."""
    async with leader() as one:
        for name in ("a", "b", "c"):
            await one.make(name)
        last = one.version
        for name in ("a", "b", "c"):
            await post(one, f"{TABLES}/{name}/alter", {"operations": [COMMENT]})
        forget(one)
        old, path = one.state.old, f"{TABLES}?as_of=version:{last}"
        monkeypatch.setattr(old_versions, "REBUILT_BYTES", LARGE)
        old._kept[1] = Catalog(), LARGE

        await get(one, path)
        kept = list(old._kept)
        old._kept.clear()
        old._folds[1] = Rebuild(Catalog(), Catalog(), 1, held_bytes=LARGE)
        full = await one.client.get(path)
        old._folds.clear()
        monkeypatch.setattr(old_versions, "REBUILT_BYTES", 1)
        never = await one.client.get(path)

        assert kept == [last]
        assert (full.status_code, full.json()["code"]) == (503, "not-ready")
        assert (never.status_code, never.json()["code"]) == (422, "unsupported")


async def _done(tasks: list[asyncio.Task[Any]], count: int) -> list[Any]:
    while sum(task.done() for task in tasks) < count:
        await asyncio.wait(
            [task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED
        )
    return [task.result() for task in tasks if task.done()]


async def test_given_a_client_that_waits_no_longer_then_its_rebuild_goes_on() -> None:
    async with leader(make_kv=CountedKv) as one:
        await one.make("t")
        version = one.version
        await one.make("u")
        forget(one)
        kv = counted(one)
        kv.gate.clear()
        kv.begun, before = asyncio.Semaphore(0), kv.log_reads
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(one.state.old.at(version))
            await kv.begun.acquire()
            asking.cancel()
        kv.gate.set()

        body = await get(one, f"{TABLES}?as_of=version:{version}")

        assert kv.log_reads == before + 1
        assert [table["name"] for table in body["tables"]] == ["t"]


async def test_given_pages_of_an_old_version_then_all_are_of_it() -> None:
    async with leader() as one:
        for name in ("a", "b", "c"):
            await one.make(name)
        version = one.version
        await one.client.delete(f"{TABLES}/b", headers=WAIT)
        forget(one)
        first = await get(one, f"{TABLES}?page_size=2&as_of=version:{version}")
        one.state.old._kept.clear()

        token = first["next_page_token"]
        second = await get(one, f"{TABLES}?page_size=2&page_token={token}")

        assert [table["name"] for table in first["tables"] + second["tables"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("as_of", "status", "code"),
    [
        ("version:0", 404, "not-found"),
        ("version:-1", 422, "invalid-request"),
        ("version:01", 422, "invalid-request"),
        ("version:99999999999999999", 422, "invalid-request"),
    ],
)
async def test_given_versions_that_never_were_then_they_are_refused(
    as_of: str, status: int, code: str
) -> None:
    async with leader() as one:
        forget(one)

        answer = await one.client.get(f"{TABLES}?as_of={as_of}")

        assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_given_a_version_that_is_to_come_then_503_and_nothing_is_rebuilt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metasrv.service.catalog.reading.WAIT_MS_MAX", 1)
    async with leader(make_kv=CountedKv) as one, follower_of(one) as behind:
        reads = counted(one).log_reads
        for version in (one.version + 1, 9_999_999_999_999_999):
            for server in (one, behind):
                answer = await server.client.get(f"{TABLES}?as_of=version:{version}")
                assert (answer.status_code, answer.json()["code"]) == (503, "stale")
        assert counted(one).log_reads == reads


async def test_given_a_log_that_begins_later_then_410_with_the_oldest_version() -> None:
    async with leader() as one:
        await one.make("a")
        oldest, oldest_ms = one.version, one.state.follower.catalog.at_ms
        await one.make("b")
        forget(one)
        one.state.old.bases = Begins(oldest, oldest_ms)

        for query in (f"version:{oldest - 1}", instant_text(oldest_ms - 1, "ms")):
            body = await get(one, f"{TABLES}?as_of={query}", 410)
            assert (body["code"], body["facts"]["oldest"]) == ("history-expired", oldest)
        body = await get(one, f"/v1/catalog/versions/{oldest}", 410)
        assert body["code"] == "history-expired"


async def test_given_an_update_that_is_deleted_while_it_is_read_then_410_else_corrupt() -> None:
    async with leader(make_kv=CountedKv) as one:
        for name in ("a", "b", "c"):
            await one.make(name)
        forget(one)
        counted(one).hidden = bytes(CatalogUpdateKey(2))

        assert (await get(one, f"{TABLES}?as_of=version:3", 500))["code"] == "internal"
        one.state.old.bases = Compacting(2)
        assert (await get(one, f"{TABLES}?as_of=version:3", 410))["code"] == "history-expired"


class Compacting(Begins):
    """A snapshot is made between the look for it and the read of the log."""

    looks = 0

    async def find(self, version: int) -> int:
        type(self).looks += 1
        return 0 if self.looks == 1 else await super().find(version)

    async def load(self, version: int) -> Catalog:
        return Catalog()


async def test_given_an_old_version_then_it_is_told_with_what_it_changed() -> None:
    async with leader() as one:
        await one.make("t")
        made = one.version
        await post(one, f"{TABLES}/t/rename", {"new_name": "u"})
        renamed = one.version
        await one.client.post(TABLES, json=spec("last"), headers=WAIT)
        forget(one)

        texts = [
            (await get(one, f"/v1/catalog/versions/{version}"))["text"]
            for version in (renamed, made, 1)
        ]
        diff = await get(one, f"{TABLES}/u/diff?from={made}&to={renamed}")

        assert texts[:2] == [
            "rename table main.public.t to main.public.u",
            "create table main.public.t",
        ]
        assert (
            texts[2] == "create catalog main; create schema main.public; create placement default"
        )
        assert diff["text"] == ["rename main.public.t to main.public.u"]


async def test_given_snapshots_then_a_rebuild_begins_at_the_nearest_and_410_is_below_them() -> None:
    async with leader(make_kv=CountedKv) as one:
        catalogs = []
        for name in ("a", "b", "c", "d"):
            await one.make(name)
            catalogs.append(one.state.follower.catalog)
        refs = await asyncio.gather(*(_store(one, catalog) for catalog in catalogs[:3:2]))
        await one.kv.txn(_adopted(refs), deadline_ms=DEADLINE_MS)
        forget(one)
        reads = counted(one).log_reads

        nearest = await get(one, f"{TABLES}?as_of=version:{catalogs[0].version}")
        between = await get(one, f"{TABLES}?as_of=version:{catalogs[1].version}")
        below = await get(one, f"{TABLES}?as_of=version:{catalogs[0].version - 1}", 410)

        assert [table["name"] for table in nearest["tables"]] == ["a"]
        assert [table["name"] for table in between["tables"]] == ["a", "b"]
        assert counted(one).log_reads == reads + 1
        assert f"is {catalogs[0].version}." in below["detail"]


async def _store(one: Server, catalog: Catalog) -> SnapshotRef:
    parts = list(parts_of(catalog))
    keys = [bytes(SnapshotPartKey(catalog.version, number)) for number in range(len(parts))]
    writes = tuple(Put(key, raw) for key, raw in zip(keys, parts, strict=True))
    await one.kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)
    return ref_of(catalog, parts)


def _adopted(refs: list[SnapshotRef]) -> Request:
    kept = SnapshotVersion(kept=tuple(refs))
    return Request(writes=(Put(bytes(SnapshotVersionKey()), encode(kept)),))
