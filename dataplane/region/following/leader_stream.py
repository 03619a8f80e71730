"""The records of a led region on their way to its copies: new ones from memory, older ones from its
log. Reads files, sends nothing."""

import threading
from collections import deque
from collections.abc import Sequence

from dataplane.region.copies.leader_view import NOTHING, CopyName, LeaderView
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import StreamedRecords
from dataplane.region.log.log_tail import LogTail
from dataplane.region.log.log_writer import PositionedRecord
from metasrv_base.errors import NotFound

RECENT_BYTES_MAX = 4 << 20
"""Groups of a region that are kept in memory for its copies: one that lacks more is sent the rest
from the log."""
REQUEST_BYTES_MAX = 4 << 20
"""Groups in one request to a copy; a larger one goes alone."""


class LeaderStream:
    """`request` reads the disk, and runs in a thread: beside others, but once for each copy."""

    def __init__(self, region: Region, view: LeaderView) -> None:
        self.view = view
        self._region = region
        self._lock = threading.Lock()
        """For what is in memory."""
        self._recent: deque[PositionedRecord] = deque()
        self._recent_bytes = 0
        self._tails: dict[CopyName, LogTail] = {}

    def appended(self, group: PositionedRecord, now_ms: int) -> None:
        """The group is durable in the own log."""
        with self._lock:
            self._recent.append(group)
            self._recent_bytes += len(group.payload)
            while self._recent_bytes > RECENT_BYTES_MAX and len(self._recent) > 1:
                self._recent_bytes -= len(self._recent.popleft().payload)
        self.view.appended(group.position.sequence, now_ms)

    def request(self, copy: CopyName) -> StreamedRecords:
        """Returns the records that the copy is to be sent now: the same, and what is new, until it
        has acknowledged some of them. Without records to one that has not followed this epoch
        yet: it answers where its log ends."""
        durable = self.view.durable_at(copy)
        groups = () if durable == NOTHING else self._groups_after(copy, durable)
        return StreamedRecords(
            *(self.view.epoch, self._region.log_history, self.view.common, tuple(groups)),
            unlogged_ms=self._region.unlogged_ms,
        )

    def let_go(self) -> None:
        """Frees records in memory that all copies have, and segments of copies that need none. All
        is kept while a copy is behind what is in memory, since it is sent that next."""
        view = self.view
        durable = {copy: view.durable_at(copy) for copy in view.receivers}
        with self._lock:
            for copy in list(self._tails):
                if not NOTHING < durable.get(copy, NOTHING) < view.end:
                    del self._tails[copy]
            ends = [end for end in durable.values() if end != NOTHING]
            least = min(ends, default=view.end)
            recent = self._recent
            if recent and least + 1 >= recent[0].position.sequence:
                while recent and recent[0].position.sequence <= least:
                    self._recent_bytes -= len(recent.popleft().payload)

    def _groups_after(self, copy: CopyName, sequence: int) -> Sequence[PositionedRecord]:
        if sequence >= self.view.end:
            return ()
        with self._lock:
            recent = list(self._recent)
        if recent and recent[0].position.sequence <= sequence + 1:
            return _bounded([g for g in recent if g.position.sequence > sequence])
        if sequence < self._region.log_history.base.sequence:
            return ()  # the copy needs files first
        disk, root = self._region.place.disk, self._region.place.root
        new = LogTail(disk, root, self._region.spec.region_id)
        with self._lock:
            tail = self._tails.setdefault(copy, new)
        try:
            manifest = self._region.manifest
            return tail.after(manifest, sequence, self.view.end, REQUEST_BYTES_MAX)
        except NotFound:  # a flush has let the segment go
            return ()


def _bounded(groups: Sequence[PositionedRecord]) -> Sequence[PositionedRecord]:
    size = 0
    for count, group in enumerate(groups):
        size += len(group.payload)
        if count and size > REQUEST_BYTES_MAX:
            return groups[:count]
    return groups
