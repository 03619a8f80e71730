"""The node's durable memory: what it answered is on disk before the answer leaves.

Files `node/journal-{n}` under the node's root; the highest is current. Each start writes the next
one, in the shortest form of what the last one said, and so does the first commit after a write that
failed: what that one left behind is not known, and nothing of it was answered. Whoever opens it
holds the lock of the node's root (root_lock.py), so it has one writer.
"""

import asyncio
import re
import threading
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

    def __init__(self, files: "JournalFiles", state: NodeState) -> None:
        self.state = state
        self._files = files
        self._turn = asyncio.Lock()
        self._waiting: list[_Waiting] = []
        self._is_in_doubt = False

    async def commit(self, records: Iterable[Record]) -> None:
        """Append and sync; one sync serves all that wait at this moment.

        Raises Unavailable if it could not be written: then it is not in `state`, and never will be
        in a file that is read before another commit has succeeded, or else is harmless: it was not
        answered. The next commit goes to a new file.
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
        records = [record for member in group for record in member.records]
        write = self._write_anew if self._is_in_doubt else self._files.append
        self._is_in_doubt = True  # until it is known to be written; a cancelled write is not
        try:
            await asyncio.to_thread(write, encode(records))
        except MetaError as error:
            raise Unavailable(what="the journal of the node", cause=error.code) from error
        self._is_in_doubt = False
        for member in group:
            member.is_written = True
            for record in member.records:
                self.state.take(record)

    def _write_anew(self, data: bytes) -> None:
        self._files.begin(encode(self.state.records()) + data)

    def close(self) -> None:
        self._files.close()


class JournalFiles:
    """The current file, and how the next one takes its place. Blocking, and safe for threads: who
    waits for a write may be cancelled while it goes on, and no file is closed under a write."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._file: AppendFile | None = None
        self._writing = threading.Lock()

    def newest(self) -> bytes:
        """What the current file holds; nothing if there is none."""
        numbers = self._numbers()
        return _read(self._disk, self._path(numbers[-1])) if numbers else b""

    def begin(self, data: bytes) -> None:
        """Goes on in the next file, which holds *data*; it is there whole or not at all."""
        with self._writing:
            self._begin(data)

    def append(self, data: bytes) -> None:
        with self._writing:
            assert self._file is not None, "begun when it was opened"
            self._file.append(data)
            self._file.sync()

    def close(self) -> None:
        with self._writing:
            self._close()

    def _begin(self, data: bytes) -> None:
        for name in self._disk.list(self._folder):
            if _UNFINISHED.fullmatch(name):
                self._disk.remove(f"{self._folder}/{name}")
        numbers = self._numbers()
        path = self._path(numbers[-1] + 1 if numbers else 1)
        file = self._disk.create(path + UNFINISHED)
        file.append(data)
        file.sync()
        self._disk.rename(path + UNFINISHED, path)
        self._disk.sync_folder(self._folder)
        self._close()
        self._file = file
        for number in numbers:
            self._disk.remove(self._path(number))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _numbers(self) -> list[int]:
        names = self._disk.list(self._folder)
        return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))

    def _path(self, number: int) -> str:
        return f"{self._folder}/journal-{number}"


def open_journal(disk: Disk, root: str, node_id: str) -> NodeJournal:
    """Read the current file and go on in a new one. Blocking; run once, at start.

    Raises Corrupt for a damaged journal: a node that has forgotten its tombstones must not serve.
    """
    folder = f"{root}/{FOLDER}"
    disk.make_folder(folder)
    files = JournalFiles(disk, folder)
    state = fold(node_id, decode(files.newest()))
    files.begin(encode(state.records()))
    return NodeJournal(files, state)


def _read(disk: Disk, path: str) -> bytes:
    return disk.read(path, 0, disk.size(path))
