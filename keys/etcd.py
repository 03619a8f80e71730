"""EtcdKv: the port `Kv` on etcd, by the stubs of `aetcd.rpc` over grpc.aio.

Each call is one request with one deadline; nothing is retried here. The cluster's prefix is added
and removed here and nowhere else. Why these stubs: docs/decisions/0002-etcd-client.md.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from aetcd import rpc

from base.errors import Conflict, Unknown
from keys.etcd_calls import Caller, Login, Outgoing
from keys.etcd_channel import Credentials, open_channel
from keys.etcd_errors import translated
from keys.etcd_watch import NEEDS_LEADER, Source, WatchedRange, follow
from keys.key import prefix_end
from keys.kv import (
    Answer,
    Compare,
    Delete,
    Get,
    KeyValue,
    LeaseId,
    Page,
    Put,
    Request,
    Watched,
)
from keys.limits import check_limits
from keys.mvcc import TO_THE_END

LOWEST_KEY = b"\0"  # etcd takes no empty key


class EtcdKv:
    """Implements keys.kv.Kv. Opened by `connect`, closed by `close`."""

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

    async def txn(self, request: Request, *, deadline_ms: int) -> Answer:
        check_limits(request)
        writes = [self._write_op(write) for write in request.writes]
        sent = rpc.TxnRequest(
            compare=[self._compare(compare) for compare in request.compares],
            success=writes + [self._get_op(get) for get in request.reads],
            failure=[self._get_op(get) for get in request.on_refusal],
        )
        call = Outgoing("txn", self._kv.Txn, sent, writes=bool(writes))
        answer = await self._caller.ask(call, deadline_ms=deadline_ms)
        responses = answer.responses[len(writes) :] if answer.succeeded else answer.responses
        ranges = tuple(self._items(response.response_range.kvs) for response in responses)
        return Answer(answer.succeeded, answer.header.revision, ranges)

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> Page:
        sent = self._get(get)
        sent.revision = revision
        sent.serializable = serializable
        call = Outgoing("range", self._kv.Range, sent, writes=False)
        answer = await self._caller.ask(call, deadline_ms=deadline_ms)
        return Page(self._items(answer.kvs), revision or answer.header.revision, answer.more)

    async def watch(
        self, key: bytes, end: bytes, *, start_revision: int
    ) -> AsyncGenerator[Watched, None]:
        assert start_revision > 0, "watch from a revision that was read"
        watched = WatchedRange(self._key(key), self._end(end), self._prefix)
        source = Source(self._watch, self._caller, watched)
        async with aclosing(follow(source, start_revision)) as found:
            async for each in found:
                yield each

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        """etcd counts whole seconds: the lease may be longer than *ttl_ms*, never shorter."""
        sent = rpc.LeaseGrantRequest(TTL=-(-ttl_ms // 1000))
        call = Outgoing("grant", self._lease.LeaseGrant, sent, writes=True)
        answer = await self._caller.ask(call, deadline_ms=deadline_ms)
        assert ttl_ms <= answer.TTL * 1000
        return LeaseId(answer.ID)

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        """One stream per call: the deadline covers all of it, and no old answer can be mistaken.

        etcd asks nobody who renews a lease for a token.
        """
        with translated("keep_alive", writes=True):
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

    def _key(self, key: bytes) -> bytes:
        return self._prefix + key or LOWEST_KEY

    def _end(self, end: bytes) -> bytes:
        return prefix_end(self._prefix) if end == TO_THE_END else self._prefix + end

    def _compare(self, compare: Compare) -> Any:
        return rpc.Compare(
            result=rpc.Compare.EQUAL,
            target=rpc.Compare.MOD,
            key=self._key(compare.key),
            range_end=b"" if compare.end is None else self._end(compare.end),
            mod_revision=compare.mod_revision,
        )

    def _get(self, get: Get) -> Any:
        return rpc.RangeRequest(
            key=self._key(get.key),
            range_end=b"" if get.end is None else self._end(get.end),
            limit=get.limit,
            keys_only=get.keys_only,
        )

    def _get_op(self, get: Get) -> Any:
        return rpc.RequestOp(request_range=self._get(get))

    def _write_op(self, write: Put | Delete) -> Any:
        key = self._key(write.key)
        if isinstance(write, Delete):
            return rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key))
        put = rpc.PutRequest(key=key, value=write.value, lease=write.lease or 0)
        return rpc.RequestOp(request_put=put)

    def _items(self, found: Iterable[Any]) -> tuple[KeyValue, ...]:
        cut = len(self._prefix)
        return tuple(
            KeyValue(kv.key[cut:], kv.value, kv.create_revision, kv.mod_revision, kv.lease)
            for kv in found
        )
