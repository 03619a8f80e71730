"""`metasrv check` for a simulated cluster: over its network, and at its disks."""

from collections.abc import Mapping
from dataclasses import dataclass

from dataplane.region.check.inspect import inspect
from keys.model.cluster import NodeRecord
from metasrv.check.check_input import NodeReport, ServerReport
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.inspect import Inspection, InspectRequest
from tests.sim.cluster.disks import Disks, ProcessDisk
from tests.sim.cluster.net import Network, Wire
from tests.sim.loop import WORLD, SimLoop

DEADLINE_MS = 5_000


@dataclass(frozen=True)
class SimEyes:
    """Implements metasrv.check.collect.Inspector."""

    loop: SimLoop
    network: Network
    disks: Disks
    urls: tuple[str, ...]

    async def report(self, node: NodeRecord) -> NodeReport:
        client = HttpClient([node.address], transport=Wire(self.network))
        try:
            answer = await client.request("GET", "/node/v1/regions", deadline_ms=DEADLINE_MS)
        except MetaError as error:
            raise Unavailable(what=node.node_id) from error
        return answer.body(NodeReport)

    async def inspect(self, node: NodeRecord, request: InspectRequest) -> Inspection:
        return inspect(ProcessDisk(self.disks, self.loop, WORLD), node.root, request)

    async def servers(self) -> Mapping[str, ServerReport | str]:
        found: dict[str, ServerReport | str] = {}
        for url in self.urls:
            client = HttpClient([url], transport=Wire(self.network))
            answer = await client.request("GET", "/v1/cluster", deadline_ms=DEADLINE_MS)
            found[url] = answer.body(ServerReport)
        return found
