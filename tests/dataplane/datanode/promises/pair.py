"""Two nodes in memory that share regions: promises go from the desk of the one to the other."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.promises.promise_asker import PromiseAsker
from dataplane.datanode.promises.promise_desk import PromiseDesk
from dataplane.datanode.promises.shared_regions import PromisePorts
from dataplane.region.copies.leader_silence import FollowedHere, LeaderSilence
from dataplane.region.copies.leader_view import CopyName, CopySet, LeaderView, OwnLog
from dataplane.region.copies.promises import (
    CopyHere,
    GivenPromises,
    NodePromises,
    ReceivedPromises,
)
from dataplane.region.copies.staleness import CommonAt
from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.promises import PromiseAnswer, PromiseRequest

CLUSTER = "c"
LEADER, COPY, THIRD = (CopyName(f"dn-{number}", f"/dn-{number}/7") for number in (1, 2, 3))


def view_of(
    leader: CopyName, *others: CopyName, epoch: int = 1, learners: tuple[CopyName, ...] = ()
) -> LeaderView:
    members = CopySet(1, epoch, frozenset((leader, *others)), frozenset(learners))
    return LeaderView.open(leader, members, 1, OwnLog(0, 0), now_ms=0)


@dataclass
class LedHere:
    region_id: int
    view: LeaderView
    clock: Clock

    @property
    def receivers(self) -> Mapping[CopyName, str | None]:
        return {copy: f"http://{copy.node}" for copy in self.view.receivers}

    def note_answer(self, copy: CopyName) -> None:
        self.view.note_answer(copy, self.clock.mono_ms())


@dataclass
class Regions:
    """The `SharedRegions` port: the regions of a node, as a test says."""

    promises: NodePromises
    clock: Clock
    here: dict[int, CopyHere] = field(default_factory=dict)
    views: dict[int, LeaderView] = field(default_factory=dict)

    def led(self) -> Iterator[LedHere]:
        return (LedHere(region_id, view, self.clock) for region_id, view in self.views.items())

    def copy_here(self, region_id: int) -> CopyHere | None:
        return self.here.get(region_id)

    def followed_here(self) -> Iterator[FollowedHere]:
        return (
            FollowedHere(region_id, copy.epoch, LEADER.node)
            for region_id, copy in self.here.items()
            if not copy.is_leader
        )

    def leave(self, region_id: int) -> None:
        self.here.pop(region_id, None)
        self.views.pop(region_id, None)


@dataclass
class Positions:
    """The `CommonPositions` port: what leaders of a node say is common, as a test says."""

    common: dict[int, int] = field(default_factory=dict)
    told: list[tuple[int, str, CommonAt]] = field(default_factory=list)
    """Positions that copies of the node were told, with their regions and roots."""

    def common_of(self, region_id: int, epoch: int) -> int | None:
        return self.common.get(region_id)

    def tell(self, region_id: int, root: str, position: CommonAt) -> None:
        self.told.append((region_id, root, position))


@dataclass
class PromisingNode:
    """One process: a new one has new promises."""

    name: str
    clock: Clock
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.regions = Regions(NodePromises(self.clock.mono_ms), self.clock)
        self.positions = Positions()
        identity = NodeIdentity(self.name, "i", f"http://{self.name}", "z", f"/{self.name}")
        self.ports = PromisePorts(
            *(Membership(identity, CLUSTER), self.regions, self.clock, LeaderSilence()),
            *(self.count, self.positions),
        )
        self.desk = PromiseDesk(self.ports)

    @property
    def given(self) -> GivenPromises:
        return self.regions.promises.given

    @property
    def received(self) -> ReceivedPromises:
        return self.regions.promises.received

    def count(self, outcome: str, number: int) -> None:
        self.counts[outcome] += number

    def asker(self, peers: "Peers") -> PromiseAsker:
        return PromiseAsker(self.ports, peers)

    def lead(self, region_id: int, *others: CopyName, epoch: int = 1) -> LeaderView:
        own = CopyName(self.name, f"/{self.name}/7")
        self.regions.here[region_id] = CopyHere(own.root, epoch, is_leader=True)
        view = self.regions.views[region_id] = view_of(own, *others, epoch=epoch)
        return view

    def follow(self, region_id: int, epoch: int = 1) -> None:
        root = f"/{self.name}/7"
        self.regions.here[region_id] = CopyHere(root, epoch, is_leader=False)


@dataclass
class Peers:
    """The `PromisePeers` port: nodes by address, and faults on the way."""

    nodes: dict[str, PromisingNode]
    travel_ms: int = 0
    """The time that each way takes."""
    is_cut: bool = False
    requests: list[PromiseRequest] = field(default_factory=list)

    async def ask(self, address: str, request: PromiseRequest, deadline_ms: int) -> PromiseAnswer:
        self.requests.append(request)
        node = self.nodes[address]
        if self.is_cut:
            await node.clock.sleep_ms(deadline_ms)
            raise Unavailable(what=address, reason="it is silent")
        await node.clock.sleep_ms(self.travel_ms)
        answer = node.desk.answer(request)
        await node.clock.sleep_ms(self.travel_ms)
        return answer
