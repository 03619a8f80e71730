"""A leader that answers no node, and a machine with nothing on it."""

from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    NodeResources,
    RegisterAnswer,
    RegisterRequest,
)

RESOURCES = NodeResources(
    cpu_cores=1, memory_bytes=1, memory_free_bytes=1, disk_bytes=1, disk_free_bytes=1
)


class SilentLeader:
    """For nodes that never register."""

    async def register(self, request: RegisterRequest) -> RegisterAnswer:
        raise Unavailable

    async def heartbeat(self, request: HeartbeatRequest, deadline_ms: int) -> HeartbeatAnswer:
        raise Unavailable


class EmptyMachine:
    async def folders(self) -> tuple[str, ...]:
        return ()

    async def resources(self) -> NodeResources:
        return RESOURCES
