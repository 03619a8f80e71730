"""The node's durable memory: what it answered is on disk before the answer leaves.

Files `node/journal-{n}` under the node's root; the highest is current. Each start writes the next
one, in the shortest form of what the last one said. Whoever opens it holds the lock of the node's
root (root_lock.py), so it has one writer.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from base.errors import MetaError, Unavailable
from dataplane.datanode.journal_format import Record, decode, encode
from dataplane.datanode.node_state import NodeState, fold
from dataplane.region.disk import AppendFile, Disk

FOLDER = "node"
UNFINISHED = ".tmp"
_NAME = re.compile(r"journal-([1-9][0-9]{0,18})")
_UNFINISHED = re.compile(_NAME.pattern + re.escape(UNFINISHED))


@dataclass(slots=True)
class _Waiting:
    records: Sequence[Record]
    is_written: bool = False


class NodeJournal:
    """`state` is what the file says; it changes only after the file did (and was synced)."""

    def __init__(self, file: AppendFile, state: NodeState) -> None:
        self.state = state
        self._file = file
        self._turn = asyncio.Lock()
        self._waiting: list[_Waiting] = []
        self._is_broken = False

    async def commit(self, records: Iterable[Record]) -> None:
        """Append and sync; one sync serves all that wait at this moment.

        Raises Unavailable once a write has failed: what the file then holds is known only after
        the next start, so nothing is answered before it.
        """
        mine = _Waiting(tuple(records))
        if not mine.records:
            return
        self._waiting.append(mine)
        async with self._turn:
            if not mine.is_written:
                await self._write_waiting()

    async def _write_waiting(self) -> None:
        group, self._waiting = self._waiting, []
        if self._is_broken:
            raise Unavailable(what="the journal of the node", reason="a write failed; restart it")
        self._is_broken = True  # until it is known to be written; a cancelled write is not
        data = encode(record for member in group for record in member.records)
        try:
            await asyncio.to_thread(self._append, data)
        except MetaError as error:
            raise Unavailable(what="the journal of the node", cause=error.code) from error
        self._is_broken = False
        for member in group:
            member.is_written = True
            for record in member.records:
                self.state.take(record)

    def _append(self, data: bytes) -> None:
        self._file.append(data)
        self._file.sync()

    def close(self) -> None:
        self._file.close()


def open_journal(disk: Disk, root: str, node_id: str) -> NodeJournal:
    """Read the current file and go on in a new one. Blocking; run once, at start.

    Raises Corrupt for a damaged journal: a node that has forgotten its tombstones must not serve.
    """
    folder = f"{root}/{FOLDER}"
    disk.make_folder(folder)
    names = disk.list(folder)
    numbers = sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))
    last = numbers[-1] if numbers else 0
    state = fold(node_id, decode(_read(disk, f"{folder}/journal-{last}")) if last else ())
    for name in names:
        if _UNFINISHED.fullmatch(name):
            disk.remove(f"{folder}/{name}")
    path = f"{folder}/journal-{last + 1}"
    file = disk.create(path + UNFINISHED)
    file.append(encode(state.records()))
    file.sync()
    disk.rename(path + UNFINISHED, path)
    disk.sync_folder(folder)
    for number in numbers:
        disk.remove(f"{folder}/journal-{number}")
    return NodeJournal(file, state)


def _read(disk: Disk, path: str) -> bytes:
    return disk.read(path, 0, disk.size(path))
