"""Registrations of nodes as they are stored, and the records of removed nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keys.commit.committer import Committer, StaleRead
from keys.commit.txn import Txn, snapshot
from keys.key import Range
from keys.model.cluster import (
    DATANODE,
    NodeKey,
    NodeRecord,
    Removal,
    RemovedNode,
    RemovedNodeKey,
    Resources,
    Returned,
)
from keys.model.tables import DatanodeTableKey
from keys.store.kv import Kv
from keys.store.readable import Tell, readable
from keys.store.scan import scan
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.wire.api.placing.placement_rules import validate_labels
from metasrv_base.wire.node.nodes import RegisterRequest
from metasrv_base.wire.problem.problems import refuse

RACES_MAX = 5  # writers of one node's registration at once; the last one to try is told so


@dataclass(frozen=True, slots=True)
class NodeRegistry:
    """Every change is one fenced transaction, durable when it returns."""

    kv: Kv
    committer: Committer
    clock: Clock
    store_deadline_ms: int

    async def nodes(self, tell: Tell) -> list[NodeRecord]:
        """The registered nodes, except those that cannot be read."""
        keys: Range = NodeKey.under(DATANODE)
        items, _ = await scan(self.kv, keys, deadline_ms=self.store_deadline_ms)
        return [row.value for row in readable(NodeKey, NodeRecord, items, tell)]

    async def removed(self, tell: Tell) -> list[RemovedNode]:
        """The records of removed nodes, except those that cannot be read."""
        keys: Range = RemovedNodeKey.under(DATANODE)
        items, _ = await scan(self.kv, keys, deadline_ms=self.store_deadline_ms)
        return [row.value for row in readable(RemovedNodeKey, RemovedNode, items, tell)]

    async def removed_node(self, node_id: str) -> RemovedNode | None:
        """Reads the record of a removed node; returns None if the node is registered, or never
        was."""
        key = RemovedNodeKey(DATANODE, node_id)
        stored = await snapshot(self.kv, key, deadline_ms=self.store_deadline_ms)
        return stored.get(key)

    async def enrol(self, request: RegisterRequest, by: str | None) -> NodeRecord:
        """The registration as it is stored: of a new node, of another process of a known one, or of
        one that was removed and comes back as a new one. *by*: as in `must_speak_for`.

        Raises Refused("node-bound"), Conflict("node-removed"), Conflict("stale-incarnation") if
        another process registers meanwhile, and as `write`.
        """
        made = _node_of(request, by, self.clock.wall_ms())
        before: list[NodeRecord | None] = []

        def enrolled(old: NodeRecord | None, removed: RemovedNode | None) -> NodeRecord:
            before.append(old)
            _must_not_overtake(old, before[0], request)
            if removed is None:
                return made if old is None else _carried_on(made, old, request, by)
            if removed.node.incarnation == request.incarnation:
                why = removed.removal
                raise Conflict("node-removed", node_id=request.node_id, reason=why.reason)
            return made.model_copy(update={"returned": _holding(removed.removal, request)})

        return await self.write(request.node_id, enrolled)

    async def remove(
        self, node_id: str, removal: Removal, may_go: Callable[[], bool]
    ) -> RemovedNode:
        """Durable when it returns: its row is gone, and what it was is kept under `__removed-`.

        Raises Conflict("object-locked") if a route names it since it was judged, or *may_go*, which
        is called just before the commit, returns False. Raises NotFound.
        """
        key, gone = NodeKey(DATANODE, node_id), RemovedNodeKey(DATANODE, node_id)
        self.committer.must_have_space()
        read = await snapshot(self.kv, key, gone, deadline_ms=self.store_deadline_ms)
        node = read.get(key)
        if node is None:
            raise NotFound(what="node", name=node_id)
        removed = RemovedNode(node=node, removal=removal)
        txn = Txn.on(read).delete(key).put(gone, removed)
        txn = txn.while_empty(DatanodeTableKey.under(node_id))
        if not may_go():
            raise Conflict("object-locked", resource=f"node {node_id}")
        try:
            await self.committer.commit(txn)
        except StaleRead as error:
            raise Conflict("object-locked", resource=f"node {node_id}") from error
        return removed

    async def write(
        self, node_id: str, change: Callable[[NodeRecord | None, RemovedNode | None], NodeRecord]
    ) -> NodeRecord:
        """Stores and returns the node that *change* makes; deletes the record of the removed node.

        *change* takes the stored node and the record of the removed node, each None if there is
        none; it is called again after a lost race. Raises Conflict("object-locked") after
        RACES_MAX lost races, Unavailable("storage-full").
        """
        self.committer.must_have_space()
        key, gone = NodeKey(DATANODE, node_id), RemovedNodeKey(DATANODE, node_id)
        for _ in range(RACES_MAX):
            read = await snapshot(self.kv, key, gone, deadline_ms=self.store_deadline_ms)
            node = change(read.get(key), read.get(gone))
            txn = Txn.on(read).put(key, node)
            try:
                await self.committer.commit(txn.delete(gone) if read.get(gone) else txn)
            except StaleRead:
                continue
            return node
        raise Conflict("object-locked", resource=f"node {node_id}")


def must_speak_for(node: NodeRecord, by: str | None) -> None:
    """Checks that the sender may act for *node*. *by* is the holder of the token that was shown;
    None if no tokens are in use.

    Raises Refused("node-bound").
    """
    if by is not None and node.principal not in (None, by):
        raise Refused("node-bound", node_id=node.node_id, principal=node.principal, shown=by)


def relabelled(node: NodeRecord, labels: Mapping[str, str | None]) -> NodeRecord:
    """*node* with the labels that are named changed; None removes one, if it is there.

    Raises Refused for labels that no node may have, or for too many of them.
    """
    named = {**node.labels, **labels}
    left = {name: value for name, value in sorted(named.items()) if value is not None}
    refuse(validate_labels(left))
    return node.model_copy(update={"labels": left})


def _must_not_overtake(
    old: NodeRecord | None, before: NodeRecord | None, request: RegisterRequest
) -> None:
    """Raises Conflict("stale-incarnation") if the stored node is of a process that registered while
    this registration was on its way: the sender may be dead by now. *before*: the node as it was
    stored at the first read."""
    own = {request.incarnation} if before is None else {request.incarnation, before.incarnation}
    if old is not None and old.incarnation not in own:
        raise Conflict("stale-incarnation", node_id=old.node_id, current=old.incarnation)


def _carried_on(
    made: NodeRecord, old: NodeRecord, request: RegisterRequest, by: str | None
) -> NodeRecord:
    """Adds to the registration of a new process what outlives processes."""
    must_speak_for(old, by)
    return made.model_copy(
        update={
            "cordon": old.cordon,
            "labels": old.labels,
            "returned": old.returned and _holding(old.returned.removal, request),
            "principal": old.principal or by,
        }
    )


def _node_of(request: RegisterRequest, by: str | None, now_ms: int) -> NodeRecord:
    return NodeRecord(
        node_id=request.node_id,
        role=DATANODE,
        address=request.address,
        zone=request.zone,
        root=request.root,
        version=request.version,
        incarnation=request.incarnation,
        resources=Resources(
            cpu_cores=request.resources.cpu_cores,
            memory_bytes=request.resources.memory_bytes,
            disk_bytes=request.resources.disk_bytes,
        ),
        registered_at_ms=now_ms,
        engines=tuple(sorted(set(request.engines))),
        principal=by,
    )


def _holding(removal: Removal, request: RegisterRequest) -> Returned:
    return Returned(
        removal=removal, folders=tuple(request.folders), folder_count=request.folder_count
    )
