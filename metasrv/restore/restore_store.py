"""The transactions of a restore: each compares the mark of its run, the last one adopts all.

Killed anywhere, a restore leaves a prefix without an identity: a server that is started on it finds
keys, makes no cluster of them and serves nothing. Another run takes the mark over, which ends this
one at its next transaction, deletes what it wrote and begins anew.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keys.key import Range, prefix_end
from keys.model.cluster import ClusterKey, ClusterRecord, RestoreMark, RestoreMarkKey
from keys.model.log import CatalogVersion, CatalogVersionKey
from keys.store.kv import Compare, Delete, Get, KeyValue, Kv, Put, Request, TxnAnswer
from keys.store.scan import pages
from keys.value import encode
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Unavailable, Unknown

FAMILIES = b"__"
OURS = Range(FAMILIES, prefix_end(FAMILIES))
"""Every key that metasrv writes begins so."""
ELECTION = Range(b"__election/", prefix_end(b"__election/"))
CLEARED_AT_ONCE = Get(b"", limit=100, keys_only=True)
ATTEMPTS_MAX = 20
PAUSE_MS = 500
"""Between attempts at a store that does not answer: ten seconds in all, and its deadlines."""
TAKE_OVERS_MAX = 5
"""Each was lost to another run that began meanwhile: one that was killed begins once at most."""
IsDone = Callable[[TxnAnswer], bool]
"""Whether a refused transaction had been done before."""


@dataclass(slots=True)
class RestoreStore:
    """The store, as one run of a restore writes to it."""

    kv: Kv
    clock: Clock
    mark: RestoreMark
    deadline_ms: int
    _revision: int = 0
    """Revision of the mark that this run has written; 0: none."""

    async def begin(self, *, again: bool) -> None:
        """Takes the prefix. Raises Conflict `prefix-not-empty`.

        *again*: takes over what an unfinished restore has left, and deletes it. A transaction of a
        run that was killed may still arrive between the read and the take-over: it is read again.
        """
        if again:
            for _ in range(TAKE_OVERS_MAX):
                if await self._take(await self._left()):
                    return
        elif await self._left() is not None:
            raise _not_empty(
                "a restore has begun here and not ended; if it does not run any more, `--again` "
                "deletes what it wrote and begins anew"
            )
        elif await self._take(None):
            return
        raise _not_empty("another restore is under way")

    async def _take(self, left: KeyValue | None) -> bool:
        """Whether this run has the prefix, from a restore that *left* its mark or from nobody.
        False: another run has written its mark since. Raises Conflict `prefix-not-empty`."""
        if left is None:
            self._revision = await self._first(Compare(OURS.start, 0, OURS.end))
        else:
            self._revision = await self._first(Compare(left.key, left.mod_revision))
            if self._revision:
                await self._clear()
        return self._revision > 0

    async def _left(self) -> KeyValue | None:
        """The mark of a restore that has not ended; None: there is none, or a cluster."""
        reads = (Get(bytes(RestoreMarkKey())), Get(bytes(ClusterKey())))
        answer = await self._sent(Request(reads=reads))
        mark, cluster = answer.ranges
        return mark[0] if mark and not cluster else None

    async def _first(self, compare: Compare) -> int:
        """The revision of the mark of this run; 0: there is one of another run."""
        key = bytes(RestoreMarkKey())
        request = Request(
            compares=(compare,), writes=(Put(key, encode(self.mark)),), on_refusal=(Get(key),)
        )
        answer = await self._sent(request)
        if answer.succeeded:
            return answer.revision
        marks = answer.ranges[0]
        if marks and marks[0].value == encode(self.mark):  # an answer was lost
            return marks[0].mod_revision
        if marks:
            return 0
        raise _not_empty("there are keys under it")

    async def _clear(self) -> None:
        """Deletes all but the mark, a page at a time."""
        mark = bytes(RestoreMarkKey())
        async for page in pages(self.kv, OURS, deadline_ms=self.deadline_ms, like=CLEARED_AT_ONCE):
            gone = tuple(Delete(item.key) for item in page.items if item.key != mark)
            if gone:
                await self._guarded(Request(compares=(self._fence,), writes=gone))

    async def write(self, puts: tuple[Put, ...]) -> None:
        """Raises Conflict `prefix-not-empty` once another run has taken the prefix."""
        first = puts[0].key
        request = Request(
            compares=(self._fence, Compare(first, 0)), writes=puts, on_refusal=(Get(first),)
        )
        await self._guarded(request, is_done=lambda answer: bool(answer.ranges[0]))

    async def adopt(self, cluster: ClusterRecord, version: CatalogVersion) -> None:
        """The last transaction: from here on a server that is started serves the cluster.

        Raises Conflict `prefix-not-empty` if a server runs on the prefix already: it has read a
        catalog without beginning.
        """
        key = ClusterKey()
        request = Request(
            compares=(
                self._fence,
                Compare(bytes(key), 0),
                Compare(ELECTION.start, 0, ELECTION.end),
            ),
            writes=(
                Put(bytes(key), encode(cluster)),
                Put(bytes(CatalogVersionKey()), encode(version)),
                Delete(bytes(RestoreMarkKey())),
            ),
            on_refusal=(Get(bytes(key)), Get(bytes(RestoreMarkKey()))),
        )
        answer = await self._sent(request)
        if answer.succeeded:
            return
        clusters, mark = answer.ranges
        if clusters and clusters[0].value == encode(cluster):  # an answer was lost
            return
        if mark and mark[0].mod_revision == self._revision:
            raise _not_empty("a server was started on it: end it, and begin again with `--again`")
        raise _taken()

    @property
    def _fence(self) -> Compare:
        assert self._revision, "begun first"
        return Compare(bytes(RestoreMarkKey()), self._revision)

    async def _guarded(self, request: Request, is_done: IsDone | None = None) -> None:
        answer = await self._sent(request)
        if answer.succeeded:
            return
        left = await self._left()
        is_ours = left is not None and left.mod_revision == self._revision
        if not is_ours or is_done is None or not is_done(answer):
            raise _taken()

    async def _sent(self, request: Request) -> TxnAnswer:
        """The answer; the same bytes are sent until there is one. Raises Unavailable."""
        for left in reversed(range(ATTEMPTS_MAX)):
            try:
                return await self.kv.txn(request, deadline_ms=self.deadline_ms)
            except (Unknown, Unavailable) as error:
                if not left:
                    raise Unavailable(what="etcd", reason=error.code) from error
            await self.clock.sleep_ms(PAUSE_MS)
        raise AssertionError


def _taken() -> Conflict:
    return _not_empty("another restore has taken it over")


def _not_empty(reason: str) -> Conflict:
    return Conflict("prefix-not-empty", reason=reason)
