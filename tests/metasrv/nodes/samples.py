"""Nodes, tables and routes as tests of the control plane need them."""

from keys.model.cluster import NodeRecord, Resources
from keys.model.tables import Column, RegionRoute, RegionState, TableInfo, TableRoute
from metasrv_base.ids import TableId, region_id
from metasrv_base.schema.partition import HashRule
from metasrv_base.wire.node.nodes import RegionStat


def node(node_id: str, incarnation: str = "i-1") -> NodeRecord:
    return NodeRecord(
        node_id=node_id,
        role="datanode",
        address=f"http://{node_id}",
        zone="z",
        root=f"/data/{node_id}",
        version="0",
        incarnation=incarnation,
        resources=Resources(cpu_cores=1, memory_bytes=1 << 30, disk_bytes=1 << 40),
        registered_at_ms=0,
    )


def info(table_id: int = 1024, name: str = "t") -> TableInfo:
    column = Column(id=1, name="id", type="int64", nullable=False)
    return TableInfo(
        table_id=table_id,
        catalog="main",
        schema_name="public",
        name=name,
        version=1,
        schema_version=1,
        schema_floor=1,
        columns=(column,),
        next_column_id=2,
        primary_key=(1,),
        partition=HashRule(columns=(1,), count=1),
        options={},
        replicas=1,
        created_at_ms=0,
    )


def region(
    leader: str, table_id: int = 1024, state: RegionState = RegionState.OPEN, epoch: int = 1
) -> RegionRoute:
    name = str(region_id(TableId(table_id), 0))
    return RegionRoute(
        region_id=name,
        leader=leader,
        epoch=epoch,
        state=state,
        root=f"/data/{leader}/regions/{name}-{epoch}",
        announced=state is RegionState.OPEN,
    )


def route(leader: str, table_id: int = 1024, **facts: object) -> TableRoute:
    only = region(leader, table_id).model_copy(update=facts)
    return TableRoute(table_id=table_id, version=1, region_routes=(only,))


def stat(region_id: str, epoch: int = 1, state: str = "open", root: str | None = "") -> RegionStat:
    """*root*: where `region` has it, unless it is said."""
    return RegionStat(
        root=f"/data/dn-1/regions/{region_id}-{epoch}" if root == "" else root,
        region_id=region_id,
        epoch=epoch,
        state=state,
        rows=0,
        bytes=0,
        wal_bytes=0,
        files=0,
        version=0,
    )
