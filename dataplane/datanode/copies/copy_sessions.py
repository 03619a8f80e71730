"""Sessions in which copies of other nodes fetch the files of regions that this node leads.

A session pins the files of one manifest, so that no merge removes them. It is bounded: in number,
in time without a read, and in time altogether. A copy whose session has ended begins another, and
fetches what it lacks by then.
"""

import asyncio
import posixpath
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import structlog

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.ports import OwnNode
from dataplane.region.engine.region import Region
from dataplane.region.fetching.session_files import MANIFEST_FILE, files_of
from dataplane.region.manifests.manifest import Manifest, encode_manifest
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, NotFound, Unavailable
from metasrv_base.wire.node.copy_sessions import CopySession, CopySessionRequest

SESSIONS_MAX = 8
"""Sessions of a node at a time: each reads one piece after another."""
IDLE_MS_MAX = 30_000
SESSION_MS_MAX = 3_600_000
"""Files that are merged meanwhile keep their place on the disk for so long at most."""
PACE_MS = 5_000

log = structlog.get_logger()


@dataclass(slots=True)
class OpenSession:
    region: Region
    manifest: bytes
    """File 0."""
    paths: Sequence[str]
    """The other files, from number 1 on."""
    began_ms: int
    used_ms: int


class CopySessions:
    """The sessions of this node. *led*: regions with copies that it leads now."""

    def __init__(self, led: Callable[[], Iterable[LedRegion]], node: OwnNode, clock: Clock) -> None:
        self._led, self._node, self._clock = led, node, clock
        self._open: dict[str, OpenSession] = {}

    async def begin(self, request: CopySessionRequest) -> CopySession:
        """Pins the files of the region as they are now.

        Raises Conflict `wrong-cluster` for a request to another cluster or node, `stale-epoch`
        where this node leads the region at another epoch, NotFound where it does not lead it in
        that root or has no file of that name, Unavailable while there are as many sessions as a
        node has.
        """
        region = self._region_of(request)
        self.end_unused()
        if len(self._open) >= SESSIONS_MAX:
            what = "a session to fetch files"
            raise Unavailable("not-ready", what=what, reason=f"there are {SESSIONS_MAX} already")
        name, now_ms = str(uuid.uuid4()), self._clock.mono_ms()
        session = self._open[name] = OpenSession(region, b"", (), now_ms, now_ms)
        with ExitStack() as unbegun:
            unbegun.callback(self.end, name)
            manifest = await asyncio.to_thread(_pinned, region, name, request)
            unbegun.pop_all()
        if name not in self._open:  # its time was over meanwhile
            region.unpin_files(name)
            raise NotFound(what="copy session", name=name)
        if manifest is not None:
            session.manifest = encode_manifest(manifest)
        session.paths = _paths(region.place.root, manifest, request)
        facts = {"region_id": request.region_id, "copy_node": request.copy_node}
        log.info("copy_session_began", session=name, files=len(session.paths), **facts)
        return CopySession(
            session=name,
            manifest_bytes=len(session.manifest),
            manifest_checksum=f"{zlib.crc32(session.manifest):08x}",
        )

    async def read(self, name: str, file: int, offset: int, size: int) -> bytes:
        """Reads a piece of a file; shorter than *size* only at its end. Raises NotFound for a
        session that has ended, and for a file that it does not have, or does not have any more."""
        self.end_unused()
        session = self._open.get(name)
        if session is None:
            raise NotFound(what="copy session", name=name)
        session.used_ms = self._clock.mono_ms()
        if file == MANIFEST_FILE:
            return session.manifest[offset : offset + size]
        if file > len(session.paths):
            raise NotFound(what="file of the session", name=str(file))
        path = session.paths[file - 1]
        return await asyncio.to_thread(session.region.place.disk.read, path, offset, size)

    def end(self, name: str) -> None:
        """The files may go. May be called again."""
        session = self._open.pop(name, None)
        if session is not None:
            session.region.unpin_files(name)

    async def run(self) -> None:
        """Ends sessions that are not used, for ever."""
        while True:
            self.end_unused()
            await self._clock.sleep_ms(PACE_MS)

    def end_unused(self) -> None:
        """Ends sessions whose time is over, or whose region is not open any more."""
        now_ms = self._clock.mono_ms()
        for name, session in list(self._open.items()):
            is_idle = now_ms - session.used_ms >= IDLE_MS_MAX
            is_over = now_ms - session.began_ms >= SESSION_MS_MAX
            if is_idle or is_over or session.region.stopped is not None:
                self.end(name)

    def _region_of(self, request: CopySessionRequest) -> Region:
        me, region_id = self._node, int(request.region_id)
        if me.cluster_id is None or request.cluster_id != me.cluster_id:
            raise Conflict("wrong-cluster", expected=me.cluster_id, found=request.cluster_id)
        if request.node_id != me.node_id:
            raise Conflict("wrong-cluster", expected=me.node_id, found=request.node_id)
        led = next((each for each in self._led() if each.region_id == region_id), None)
        if led is None or led.ended is not None or led.region.place.root != request.root:
            raise NotFound(what="leader of region", name=request.region_id)
        if led.epoch != request.epoch:
            raise Conflict("stale-epoch", epoch=led.epoch, found=request.epoch)
        return led.region


def _pinned(region: Region, name: str, request: CopySessionRequest) -> Manifest | None:
    """The manifest, with its files pinned. A flush tells up to where its files go, where that is
    not known or is not enough. None: the files that the request names are pinned."""
    if request.files:
        region.pin_named(name, request.files)
        return None
    if not _reaches(region.manifest, request):
        region.maintenance.flush(to_end=True)
    manifest = region.pin_files(name)
    if not _reaches(manifest, request):
        reason = "it is not known up to where its files go, before the next flush"
        raise Unavailable("not-ready", what=f"region {region.spec.region_id}", reason=reason)
    return manifest


def _reaches(manifest: Manifest, request: CopySessionRequest) -> bool:
    return manifest.in_files is not None and manifest.in_files.sequence >= request.sequence


def _paths(root: str, manifest: Manifest | None, request: CopySessionRequest) -> list[str]:
    if manifest is None:
        return [posixpath.join(root, name) for name in request.files]
    return [posixpath.join(file.root or root, file.name) for file in files_of(manifest)]
