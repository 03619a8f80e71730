"""Heartbeats of the nodes of a plane: what keeps their leases, and brings them in line.

A beat and its answer are encoded and decoded as on the network; grants count from before the beat
was sent, and instructions are carried out as orders are.
"""

from keys.model.cluster import DATANODE, NodeRecord, Resources
from metasrv.nodes.node_liveness import NodeLiveness
from metasrv_base.clock import Clock
from metasrv_base.engines import LSM, MEMORY
from metasrv_base.errors import Conflict, MetaError, NotFound
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    NodeResources,
    RegionColumns,
    RegionStat,
    RegisterRequest,
)
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.plane import Plane

BEAT_MS = 2_000


def resources_of(node: FakeNode) -> NodeResources:
    return NodeResources(
        cpu_cores=2,
        memory_bytes=1 << 33,
        memory_free_bytes=1 << 32,
        disk_bytes=1 << 40,
        disk_free_bytes=node.disk_free_bytes,
    )


def registered(node: FakeNode) -> NodeRecord:
    """As an earlier leader has stored it."""
    resources = resources_of(node)
    return NodeRecord(
        node_id=node.node_id,
        role=DATANODE,
        address=f"http://{node.node_id}",
        zone=node.node_id,
        root=node.root,
        version="0",
        incarnation=node.incarnation,
        resources=Resources(
            cpu_cores=resources.cpu_cores,
            memory_bytes=resources.memory_bytes,
            disk_bytes=resources.disk_bytes,
        ),
        registered_at_ms=0,
        engines=(LSM, MEMORY),
    )


async def register(node: FakeNode, book: NodeLiveness) -> None:
    """Raises what the leader answers."""
    request = RegisterRequest(
        cluster_id=book.cluster_id,
        node_id=node.node_id,
        incarnation=node.incarnation,
        address=f"http://{node.node_id}",
        zone=node.node_id,
        root=node.root,
        version="0",
        resources=resources_of(node),
        engines=[LSM, MEMORY],
    )
    await book.register(RegisterRequest.model_validate_json(request.model_dump_json()))


def beat(plane: Plane, node: FakeNode, book: NodeLiveness, clock: Clock) -> bool:
    """One heartbeat of a living node; False: it has to register first.

    It may well die of the instructions in the answer.
    """
    node.sequence += 1
    node.sent_ms[node.sequence] = clock.mono_ms()
    request = HeartbeatRequest(
        cluster_id=book.cluster_id,
        node_id=node.node_id,
        incarnation=node.incarnation,
        sequence=node.sequence,
        address=f"http://{node.node_id}",
        zone=node.node_id,
        version="0",
        term=node.term,
        resources=resources_of(node),
        regions=RegionColumns.of(
            RegionStat(
                region_id=region_id,
                epoch=held.epoch,
                state=state,
                rows=0,
                bytes=0,
                wal_bytes=0,
                files=0,
                version=0,
                root=held.root,
                copies_version=held.copies_version,
            )
            for state, regions in (
                ("open", {**node.serving, **node.following}),
                ("restarted", node.restarted),
                ("lost", node.lost),
            )
            for region_id, held in regions.items()
        ),
    )
    try:
        said = book.heartbeat(HeartbeatRequest.model_validate_json(request.model_dump_json()))
    except (NotFound, Conflict):
        return False
    _obey(plane, node, HeartbeatAnswer.model_validate_json(said.model_dump_json()))
    return True


def _obey(plane: Plane, node: FakeNode, answer: HeartbeatAnswer) -> None:
    if answer.term < node.term:
        return
    for grant in answer.grants:
        plane.granted(node, answer.sequence, answer.lease_ms, grant.region_id, grant.epoch)
    if answer.instructions:
        plane.instructed += [(node.node_id, order) for order in answer.instructions]
        try:
            plane.execute(node.node_id, answer.term, answer.instructions)
        except MetaError:
            return
