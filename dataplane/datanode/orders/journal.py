"""The node's durable memory: what it answered is on disk before the answer leaves.

Each start writes the next file (journal_files.py), in the shortest form of what the last one said,
and so does the first commit after a write that failed: what that one left behind is not known, and
nothing of it was answered. Whoever opens it holds the lock of the node's root (root_lock.py), so it
has one writer.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dataplane.datanode.orders.journal_files import JournalFiles
from dataplane.datanode.orders.journal_format import Record
from dataplane.datanode.orders.node_state import JournalState, fold
from dataplane.region.disk.disk import Disk
from metasrv_base.errors import MetaError, Unavailable

FOLDER = "node"


@dataclass(slots=True)
class _Waiting:
    records: Sequence[Record]
    is_written: bool = False


class NodeJournal:
    """`state` is what the file says; it changes only after the file did (and was synced)."""

    def __init__(self, files: JournalFiles, state: JournalState) -> None:
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
        goes_on = self._files.is_marked and not self._is_in_doubt
        write = self._files.append if goes_on else self._write_anew
        self._is_in_doubt = True  # until it is known to be written; a cancelled write is not
        try:
            await asyncio.to_thread(write, records)
        except MetaError as error:
            raise Unavailable(what="the journal of the node", cause=error.code) from error
        self._is_in_doubt = False
        for member in group:
            member.is_written = True
            for record in member.records:
                self.state.take(record)

    def _write_anew(self, records: Sequence[Record]) -> None:
        self._files.begin([*self.state.records(), *records])

    def close(self) -> None:
        self._files.close()


def open_journal(disk: Disk, root: str, node_id: str) -> NodeJournal:
    """Read the current file and go on in a new one. Blocking; run once, at start.

    Raises Corrupt for a damaged journal: a node that has forgotten its tombstones must not serve.
    """
    folder = f"{root}/{FOLDER}"
    disk.make_folder(folder)
    files = JournalFiles(disk, folder)
    state = fold(node_id, files.read())
    files.begin(state.records())
    return NodeJournal(files, state)
