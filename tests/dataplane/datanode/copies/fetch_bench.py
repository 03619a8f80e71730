"""A leader's sessions and a copy's fetches in one process, with a network that a test can harm."""

from collections.abc import Callable
from dataclasses import dataclass, field

from dataplane.datanode.copies.copy_sessions import CopySessions
from dataplane.datanode.copies.file_fetches import FileFetches
from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.datanode.copies.transfer_rate import TransferRate
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leading import lead_new
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.copy_sessions import CopySession, CopySessionRequest
from metasrv_base.wire.node.orders import OpenRegion
from tests.dataplane.region.fetching.fetching import flushed
from tests.dataplane.region.fetching.ingesting import TAKES_ENTRIES, work
from tests.dataplane.region.following.stream import sent
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, place
from tests.fakes.clock import FakeClock

SMALL = 500
"""Bytes of a piece on this network."""


def membership(node: str) -> Membership:
    return Membership(NodeIdentity(node, "i", f"http://{node}", "z", f"/disk/{node}"), "cluster")


def copies(epoch_version: int = 1, leader_root: str = A) -> RegionCopies:
    members = [
        OrderedCopy(node="dn-1", root=leader_root, role="leader", address="http://dn-1"),
        OrderedCopy(node="dn-2", root=B, role="learner", address="http://dn-2"),
    ]
    return RegionCopies(version=epoch_version, min_in_sync=1, members=members)


def open_order(epoch: int, named: RegionCopies | None) -> OpenRegion:
    return OpenRegion(
        number=1,
        region_id=str(REGION_ID),
        epoch=epoch,
        root=B,
        table_id=1024,
        schema_version=1,
        schema_floor=1,
        columns=[],
        key_columns=[1],
        role="copy",
        copies=named,
    )


def request(**changes: object) -> CopySessionRequest:
    facts = CopySessionRequest(
        cluster_id="cluster",
        node_id="dn-1",
        region_id=str(REGION_ID),
        epoch=1,
        root=A,
        copy_node="dn-2",
    )
    return facts.model_copy(update=changes)


@dataclass
class Network:
    """Implements FilePort on the sessions of a leader."""

    sessions: CopySessions
    harm: Callable[[int, int, bytes], bytes] = lambda file, offset, data: data
    """Changes a piece on its way, or raises. Told the file, the offset and the bytes."""
    read: list[int] = field(default_factory=list)
    """Files of which a piece was read, in order."""
    is_cut: bool = False

    async def begin_session(self, address: str, request: CopySessionRequest) -> CopySession:
        self._must_reach(address)
        return await self.sessions.begin(request)

    async def read_piece(self, address: str, session: str, file: int, offset: int) -> bytes:
        self._must_reach(address)
        data = await self.sessions.read(session, file, offset, SMALL)
        self.read.append(file)
        return self.harm(file, offset, data)

    async def end_session(self, address: str, session: str) -> None:
        self._must_reach(address)
        self.sessions.end(session)

    def _must_reach(self, address: str) -> None:
        assert address == "http://dn-1"
        if self.is_cut:
            raise Unavailable("not-ready", what=address, sent=False)


class Bench:
    """A leader with three files on dn-1, and a learner without any on dn-2, which was asked."""

    def __init__(self, files: int = 3, bytes_per_s: int = 0) -> None:
        self.clock = FakeClock()
        self.disk = MemoryDisk(MemoryStore())
        self.region = self._led(1)
        for number in range(files):
            flushed(self.region, 5 * number, 5 * number + 5)
        self.copy = CopyRegion.create(place(self.disk, B, self.clock), SPEC, 1)
        self.followed = FollowedRegion(self.copy, open_order(1, copies()), self.clock.mono_ms)
        self.ask()
        self.sessions = CopySessions(lambda: [self.led], membership("dn-1"), self.clock)
        self.network = Network(self.sessions)
        rate = TransferRate(self.clock, bytes_per_s)
        self.copies = [self.followed]
        self.fetches = FileFetches(
            lambda: self.copies, self.network, membership("dn-2"), self.clock, rate
        )

    def _led(self, epoch: int) -> Region:
        opening = lead_new(place(MemoryDisk(MemoryStore()), A, self.clock), SPEC, epoch)
        clocks = LeaderClocks(self.clock.mono_ms, lambda: True)
        self.led = LedRegion(opening, copies(), clocks, lambda _: None)
        return opening.region

    def ask(self) -> None:
        """The leader sends what its log has for the copy."""
        self.copy.take(sent(self.region, self.copy.durable.sequence, common=0))


class IngestBench(Bench):
    """A leader that takes files, and a copy that lacks them: it has all records in front."""

    def __init__(self, upto: int = TAKES_ENTRIES) -> None:
        super().__init__(files=0)
        for item in range(1, upto + 1):
            work(self.region, item)
        self.send(common=upto - 1)

    def send(self, common: int) -> int:
        """The leader sends what its log has for the copy. Returns the end of the copy's log."""
        return self.copy.take(sent(self.region, self.copy.durable.sequence, common))
