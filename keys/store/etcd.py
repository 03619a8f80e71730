"""EtcdKv: the port `Kv` on etcd, by the stubs of `aetcd.rpc` over grpc.aio.

Each call is one request with one deadline; nothing is retried here. The cluster's prefix is added
and removed here and nowhere else. Why these stubs: docs/decisions/0002-etcd-client.md.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from aetcd import rpc

from keys.key import prefix_end
from keys.store.etcd_calls import Caller, Login, Outgoing
from keys.store.etcd_channel import Credentials, open_channel
from keys.store.etcd_errors import Translated
from keys.store.etcd_watch import NEEDS_LEADER, WatchedRange, WatchSource, follow
from keys.store.kv import (
    Compare,
    Delete,
    Get,
    KeyPage,
    KeyValue,
    LeaseId,
    Put,
    Request,
    TxnAnswer,
    Watched,
)
from keys.store.limits import check_limits
from keys.store.mvcc import TO_THE_END
from metasrv_base.errors import Conflict, Unknown

LOWEST_KEY = b"\0"  # etcd takes no empty key
EQUAL, LESS, MOD = rpc.Compare.EQUAL, rpc.Compare.LESS, rpc.Compare.MOD


class EtcdKv:
    """Implements keys.store.kv.Kv. Opened by `connect`, closed by `close`."""

    def __init__(self, channel: rpc.Channel, prefix: bytes, login: Login | None = None) -> None:
        self._channel = channel
        self._prefix = prefix
        self._caller = Caller(channel, login)
        self._kv: Any = rpc.KVStub(channel)
        self._lease: Any = rpc.LeaseStub(channel)
        self._watch: Any = rpc.WatchStub(channel)

    @classmethod
    async def connect(
        cls,
        endpoints: Sequence[str],
        prefix: bytes = b"",
        *,
        credentials: Credentials | None = None,
        login: Login | None = None,
    ) -> "EtcdKv":
        """*endpoints* are `host:port`; *prefix* is empty or ends with a slash.

        Sends nothing: an etcd that is not there, or does not let us in, shows at the first call.
        """
        assert not prefix or prefix.endswith(b"/"), "a prefix ends with a slash"
        return cls(await open_channel(endpoints, credentials), prefix, login)

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        check_limits(request)
        call = Outgoing("txn", self._kv.Txn, self._txn(request), writes=bool(request.writes))
        answer = await self._caller.ask(call, deadline_ms=deadline_ms)
        skipped = len(request.writes) if answer.succeeded else 0
        responses = answer.responses[skipped:]
        ranges = tuple(self._items(response.response_range.kvs) for response in responses)
        return TxnAnswer(answer.succeeded, answer.header.revision, ranges)

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        sent = rpc.RangeRequest()
        self._fill_get(sent, get)
        sent.revision = revision
        sent.serializable = serializable
        call = Outgoing("range", self._kv.Range, sent, writes=False)
        answer = await self._caller.ask(call, deadline_ms=deadline_ms)
        read_revision = revision or answer.header.revision
        return KeyPage(self._items(answer.kvs), read_revision, answer.more, answer.count)

    async def watch(
        self, key: bytes, end: bytes, *, start_revision: int
    ) -> AsyncGenerator[Watched, None]:
        assert start_revision > 0, "watch from a revision that was read"
        watched = WatchedRange(self._prefix + key or LOWEST_KEY, self._end(end), self._prefix)
        source = WatchSource(self._watch, self._caller, watched)
        async with aclosing(follow(source, start_revision)) as changes:
            async for each in changes:
                yield each

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        """etcd counts whole seconds: the lease may be longer than *ttl_ms*, never shorter."""
        sent = rpc.LeaseGrantRequest(TTL=-(-ttl_ms // 1000))
        call = Outgoing("grant", self._lease.LeaseGrant, sent, writes=True)
        answer = await self._caller.ask(call, deadline_ms=deadline_ms)
        assert ttl_ms <= answer.TTL * 1000
        return LeaseId(answer.ID)

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        """Renews a lease. Each call has its own stream: the deadline covers it; answers cannot mix.

        etcd asks nobody who renews a lease for a token.
        """
        with Translated("keep_alive", writes=True):
            call = self._lease.LeaseKeepAlive(timeout=deadline_ms / 1000, metadata=NEEDS_LEADER)
            try:
                await call.write(rpc.LeaseKeepAliveRequest(ID=lease))
                answer = await call.read()
            finally:
                call.cancel()
        if not isinstance(answer, rpc.LeaseKeepAliveResponse):
            raise Unknown(call="keep_alive", reason="stream over")
        return bool(answer.TTL > 0)

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        sent = rpc.LeaseRevokeRequest(ID=lease)
        call = Outgoing("revoke", self._lease.LeaseRevoke, sent, writes=True)
        try:
            await self._caller.ask(call, deadline_ms=deadline_ms)
        except Conflict:
            return  # gone already

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        call = Outgoing("compact", self._kv.Compact, rpc.CompactionRequest(revision=revision), True)
        try:
            await self._caller.ask(call, deadline_ms=deadline_ms)
        except Conflict:
            return  # compacted already

    async def close(self) -> None:
        """Ends every call and watch that is open: they raise Unavailable or Unknown."""
        await self._channel.close()

    def _end(self, end: bytes) -> bytes:
        return prefix_end(self._prefix) if end == TO_THE_END else self._prefix + end

    def _txn(self, request: Request) -> Any:
        """Filled in place: a message that is handed to another is copied, which takes longer than
        all the rest of it."""
        sent = rpc.TxnRequest()
        for compare in request.compares:
            self._fill_compare(sent.compare.add(), compare)
        for write in request.writes:
            self._fill_write(sent.success.add(), write)
        for get in request.reads:
            self._fill_get(sent.success.add().request_range, get)
        for get in request.on_refusal:
            self._fill_get(sent.failure.add().request_range, get)
        return sent

    def _fill_compare(self, sent: Any, compare: Compare) -> None:
        sent.result, sent.target = LESS if compare.or_older else EQUAL, MOD
        sent.key = self._prefix + compare.key or LOWEST_KEY
        if compare.end is not None:
            sent.range_end = self._end(compare.end)
        sent.mod_revision = compare.mod_revision + compare.or_older

    def _fill_get(self, sent: Any, get: Get) -> None:
        sent.key = self._prefix + get.key or LOWEST_KEY
        if get.end is not None:
            sent.range_end = self._end(get.end)
        sent.limit = get.limit
        sent.keys_only = get.keys_only
        sent.count_only = get.count_only
        if get.newer_than:
            sent.min_mod_revision = get.newer_than + 1

    def _fill_write(self, sent: Any, write: Put | Delete) -> None:
        if isinstance(write, Delete):
            sent.request_delete_range.key = self._prefix + write.key or LOWEST_KEY
            return
        put = sent.request_put
        put.key, put.value = self._prefix + write.key or LOWEST_KEY, write.value
        if write.lease is not None:
            put.lease = write.lease

    def _items(self, kvs: Iterable[Any]) -> tuple[KeyValue, ...]:
        cut = len(self._prefix)
        return tuple(
            KeyValue(kv.key[cut:], kv.value, kv.create_revision, kv.mod_revision, kv.lease)
            for kv in kvs
        )
