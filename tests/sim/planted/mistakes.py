"""Mistakes of servers and nodes, planted for one world at a time (docs/guarantees.md)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dataplane.datanode.membership.heartbeat import HeartbeatLoop
from dataplane.datanode.regions.serving_rights import ServingRights
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryFile
from dataplane.region.engine import serving
from dataplane.region.engine.writer import RegionWriter
from dataplane.region.memory.statements import StatementMemory
from keys.commit.batch import Batch
from keys.commit.committer import Committer
from keys.store.kv import Request, TxnAnswer
from keys.store.memory import MemoryKv
from metasrv.nodes.lease_table import LeaseTable
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.wire.node.nodes import HeartbeatAnswer
from tests.crash.enumeration import Patch
from tests.crash.planted import (
    NOT_LOCKED_AGAIN,
    NOT_RESUMED,
    RELEASED_IN_FINALLY,
    is_fence,
    is_read_set,
    without,
    without_index,
)
from tests.sim.planted import copy_mistakes as of_copies
from tests.sim.planted import rare_mistakes as planted_gains
from tests.sim.planted import schema_mistakes as planted_changes
from tests.sim.planted.seams import ALTER, alters, held, seam_of, watched


def _unaltered(request: Request) -> Request:
    return request


@dataclass(frozen=True)
class Bugs:
    """The bugs of a world; none by default."""

    alter: Callable[[Request], Request] = _unaltered
    """Returns the request that every server sends instead."""
    make_store: Callable[[Clock], MemoryKv] = MemoryKv
    patches: tuple[Patch, ...] = field(default=())

    @property
    def seams(self) -> frozenset[str]:
        """The seams that the code must come to, or the bugs change nothing."""
        altered = [] if self.alter is _unaltered else [ALTER]
        return frozenset([*map(seam_of, self.patches), *altered])

    def watched(self, reached: set[str]) -> "Bugs":
        """These bugs, which put the seams into *reached* that the code comes to."""
        patches = tuple(watched(patch, reached) for patch in self.patches)
        alter = self.alter if self.alter is _unaltered else alters(self.alter, reached)
        return replace(self, alter=alter, patches=patches)

    @contextmanager
    def planted(self) -> Iterator[None]:
        before = [(where, name, held(where, name)) for where, name, _ in self.patches]
        for where, name, bug in self.patches:
            setattr(where, name, bug)
        try:
            yield
        finally:
            for where, name, sound in before:
                setattr(where, name, sound)


class FenceByServer(MemoryKv):
    """Takes the seat for ours if our server sits there, whenever it won it."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        compares = tuple(
            one._replace(mod_revision=self._same(one.key, one.mod_revision))
            for one in request.compares
        )
        asked = Request(compares, request.writes, request.reads, request.on_refusal)
        return await super().txn(asked, deadline_ms=deadline_ms)

    def _same(self, key: bytes, revision: int) -> int:
        now = self._store.get(key)
        if not is_fence(key) or now is None or not revision:
            return revision
        then = next(self._store.scan(key, None, revision), None)
        same = then is not None and _server(then.value) == _server(now.value)
        return now.mod_revision if same else revision


def _server(value: bytes) -> str:
    name: str = json.loads(value)["server"]
    return name


async def _unknown_is_failed(self: Committer, batch: Batch) -> tuple[TxnAnswer, bool]:
    """Reports an unknown outcome as not done."""
    try:
        answer = await self._kv.txn(batch.request, deadline_ms=self._deadline_ms)
    except Unknown as error:
        raise Unavailable(what="store") from error
    return answer, False


_TAKE = HeartbeatLoop._take


async def _from_receipt(self: HeartbeatLoop, answer: HeartbeatAnswer, sent_ms: int) -> None:
    """A node that counts its leases from when the answer came."""
    now = self._world.clock.mono_ms()
    self._world.leases._sent_ms[answer.sequence] = now
    await _TAKE(self, answer, now)


_WRITE = RegionWriter._write


def _looks_before(self: RegionWriter, group: Any) -> MetaError | None:
    """A leader that looks at the fence first, and then writes and acknowledges."""
    look = vars(serving)["look"]
    with self._serving.in_doubt():
        self._serving.look()
    vars(serving)["look"] = lambda *_: None
    try:
        return _WRITE(self, group)
    finally:
        vars(serving)["look"] = look


def _nothing_remembered(self: StatementMemory, statement_id: str) -> None:
    """A repeated statement is a new one."""


def _not_synced(self: MemoryFile) -> None:
    """Written is taken for durable."""


def _not_brought_down(self: MemoryDisk, path: str) -> None:
    """Seals what another process wrote as it is read, on stable storage or not."""


def _always_leased(self: ServingRights, region_id: int, epoch: int) -> bool:
    return True


def _no_grants(self: LeaseTable, node: str, region_ids: Iterable[str]) -> int:
    """A leader that waits for nobody's lease."""
    return 0


BUGS: Mapping[str, Bugs] = {
    "no fence": Bugs(alter=without(is_fence)),
    "fence by server": Bugs(make_store=FenceByServer),
    "read set not compared": Bugs(alter=without(is_read_set)),
    "reverse index forgotten": Bugs(alter=without_index),
    "unknown told as failed": Bugs(patches=((Committer, "_send", _unknown_is_failed),)),
    "not resumed": Bugs(patches=(NOT_RESUMED,)),
    "resumed without locks": Bugs(patches=(NOT_LOCKED_AGAIN,)),
    "lock released in finally": Bugs(patches=(RELEASED_IN_FINALLY,)),
    "lease counted from receipt": Bugs(patches=((HeartbeatLoop, "_take", _from_receipt),)),
    "no wait for leases": Bugs(
        patches=(
            (LeaseTable, "free_at_ms", _no_grants),
            (LeaseTable, "node_free_at_ms", lambda self, node: 0),
        )
    ),
    "no wait after an election": Bugs(
        patches=((LeaseTable, "quiet_until_ms", property(lambda self: self.elected_at_ms)),)
    ),
    "lease not looked at": Bugs(patches=((ServingRights, "has_lease", _always_leased),)),
    "look before the append": Bugs(patches=((RegionWriter, "_write", _looks_before),)),
    "statement done twice": Bugs(patches=((StatementMemory, "find", _nothing_remembered),)),
    "log not synced": Bugs(patches=((MemoryFile, "sync", _not_synced),)),
    "sealed without a sync": Bugs(patches=((MemoryDisk, "sync_file", _not_brought_down),)),
    **{
        name: Bugs(patches=tuple(patches))
        for patches_by_name in (planted_changes.PATCHES, planted_gains.PATCHES, of_copies.PATCHES)
        for name, patches in patches_by_name.items()
    },
}
"""By name."""


def spies() -> Bugs:
    """The sound code of every seam, planted there: nothing is changed, and each seam that the code
    comes to is known."""
    patches = {seam_of(patch): patch for bugs in BUGS.values() for patch in bugs.patches}
    return Bugs(
        patches=tuple((where, name, held(where, name)) for where, name, _ in patches.values())
    )
