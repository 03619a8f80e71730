"""Access to an etcd with TLS and users, and the end of its tokens."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keys.store.etcd import EtcdKv
from keys.store.etcd_calls import Login
from keys.store.etcd_channel import Credentials
from keys.store.kv import Get, Put, Request, Watched
from metasrv_base.errors import Refused, Unavailable, Unknown
from tests.etcd.certificates import SERVER, Authority, serving_flags
from tests.etcd.process import EtcdProcess
from tests.etcd.users import guard

pytestmark = pytest.mark.etcd

DEADLINE_MS = 5_000
SHORT_MS = 500
PREFIX = b"/mine/"
WRITE = Request(writes=(Put(b"a", b"1"),))
LOGIN = Login("metasrv", "correct horse")  # of an etcd that lives for one test


@asynccontextmanager
async def connected(
    etcd: EtcdProcess, credentials: Credentials | None = None, login: Login | None = None
) -> AsyncIterator[EtcdKv]:
    kv = await EtcdKv.connect([etcd.endpoint], PREFIX, credentials=credentials, login=login)
    try:
        yield kv
    finally:
        await kv.close()


async def first_watched(kv: EtcdKv, start_revision: int) -> int:
    watch: Any = kv.watch(b"", b"\0", start_revision=start_revision)
    async with aclosing(watch) as opened:
        watched: Watched = await anext(opened)
    return watched.revision


# TLS -------------------------------------------------------------------------------------------


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    authority = Authority.made(tmp_path / "ours")
    for name in (SERVER, "metasrv"):
        authority.issue(name)
    return authority


@pytest.fixture
def tls_etcd(tmp_path: Path, ours: Authority) -> Iterator[EtcdProcess]:
    (tmp_path / "etcd").mkdir()
    process = EtcdProcess(tmp_path / "etcd", *serving_flags(ours), scheme="https")
    process.start()
    yield process
    process.kill()


async def test_given_an_etcd_with_tls_when_both_show_certificates_then_every_call_works(
    tls_etcd: EtcdProcess, ours: Authority
) -> None:
    async with connected(tls_etcd, ours.credentials("metasrv")) as kv:
        lease = await kv.grant(60_000, deadline_ms=DEADLINE_MS)
        written = await kv.txn(WRITE, deadline_ms=DEADLINE_MS)

        assert await first_watched(kv, written.revision) == written.revision
        assert await kv.keep_alive(lease, deadline_ms=DEADLINE_MS)


async def test_given_an_etcd_with_tls_when_a_stranger_calls_then_nothing_is_done(
    tls_etcd: EtcdProcess, ours: Authority, tmp_path: Path
) -> None:
    theirs = Authority.made(tmp_path / "theirs")
    theirs.issue("metasrv")
    strangers = [
        None,
        ours.credentials(None),
        theirs.credentials("metasrv"),
        Credentials(
            ours.path("ca.pem").read_bytes(),
            theirs.path("metasrv.pem").read_bytes(),
            theirs.path("metasrv.key").read_bytes(),
            SERVER,
        ),
        Credentials(
            ours.path("ca.pem").read_bytes(),
            ours.path("metasrv.pem").read_bytes(),
            ours.path("metasrv.key").read_bytes(),
            "another-name",
        ),
    ]

    for stranger in strangers:
        async with connected(tls_etcd, stranger) as kv:
            with pytest.raises(Unavailable):
                await kv.range(Get(b"a"), deadline_ms=SHORT_MS)
            with pytest.raises(Unknown):
                await kv.txn(WRITE, deadline_ms=SHORT_MS)

    async with connected(tls_etcd, ours.credentials("metasrv")) as kv:
        assert (await kv.range(Get(b"a"), deadline_ms=DEADLINE_MS)).items == ()


# Users -----------------------------------------------------------------------------------------


@pytest.fixture
async def guarded(own_etcd: EtcdProcess) -> EtcdProcess:
    await guard(own_etcd, PREFIX, LOGIN)
    return own_etcd


async def test_given_users_when_one_logs_in_then_every_call_works(guarded: EtcdProcess) -> None:
    async with connected(guarded, login=LOGIN) as kv:
        lease = await kv.grant(60_000, deadline_ms=DEADLINE_MS)
        put = Request(writes=(Put(b"a", b"1", lease),))
        written = await kv.txn(put, deadline_ms=DEADLINE_MS)

        assert await first_watched(kv, written.revision) == written.revision
        assert await kv.keep_alive(lease, deadline_ms=DEADLINE_MS)
        await kv.compact(written.revision, deadline_ms=DEADLINE_MS)
        await kv.revoke(lease, deadline_ms=DEADLINE_MS)
        assert (await kv.range(Get(b"a"), deadline_ms=DEADLINE_MS)).items == ()


async def test_given_users_when_nobody_or_another_calls_then_nothing_is_done(
    guarded: EtcdProcess,
) -> None:
    async with connected(guarded) as nobody:
        with pytest.raises(Refused):
            await nobody.txn(WRITE, deadline_ms=DEADLINE_MS)
    async with connected(guarded, login=Login(LOGIN.user, "wrong staple")) as wrong:
        with pytest.raises(Unavailable) as unavailable:
            await wrong.txn(WRITE, deadline_ms=DEADLINE_MS)
    outside = await EtcdKv.connect([guarded.endpoint], b"/other/", login=LOGIN)
    with pytest.raises(Refused) as refused:
        await outside.txn(WRITE, deadline_ms=DEADLINE_MS)
    with pytest.raises(Refused):
        await first_watched(outside, 1)
    await outside.close()

    assert refused.value.code == "unauthenticated"
    assert "authentication failed" in str(unavailable.value)
    assert "wrong staple" not in f"{unavailable.value} {unavailable.value.__cause__!r}"
    assert LOGIN.password not in repr(LOGIN)
    async with connected(guarded, login=LOGIN) as kv:
        assert (await kv.range(Get(b"a"), deadline_ms=DEADLINE_MS)).items == ()


async def test_given_a_token_that_ended_when_called_or_watching_then_a_new_one_is_got(
    guarded: EtcdProcess,
) -> None:
    async with connected(guarded, login=LOGIN) as kv:
        start = (await kv.txn(WRITE, deadline_ms=DEADLINE_MS)).revision
        seen = asyncio.Queue[int](maxsize=10)

        async def follow() -> None:
            async for watched in kv.watch(b"", b"\0", start_revision=start):
                await seen.put(watched.revision)

        async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follow())
            assert await seen.get() == start
            await asyncio.to_thread(guarded.kill)  # with it go the tokens it gave
            await asyncio.to_thread(guarded.start)
            async with connected(guarded, login=LOGIN) as other:
                await other.range(Get(b"a"), deadline_ms=DEADLINE_MS)  # it serves again
            while await _is_away(kv):
                pass
            again = (await kv.txn(WRITE, deadline_ms=DEADLINE_MS)).revision
            assert await seen.get() == again
            following.cancel()

    assert again == start + 1


async def _is_away(kv: EtcdKv) -> bool:
    """The channel takes up to a second to connect again."""
    try:
        await kv.range(Get(b"a"), deadline_ms=DEADLINE_MS)
    except Unavailable:
        return True
    return False
