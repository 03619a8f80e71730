"""The copies of a region as orders name them, and as the protocol takes them. Pure."""

from collections.abc import Mapping

from dataplane.region.copies.leader_view import CopyName, CopySet
from metasrv_base.engines import LSM
from metasrv_base.errors import Refused
from metasrv_base.wire.node.copies import CopyStanding, OrderedCopy, RegionCopies
from metasrv_base.wire.node.copy_changes import CopyChange
from metasrv_base.wire.node.orders import CreateRegion, OpenRegion


def has_others(copies: RegionCopies | None) -> bool:
    """Whether the region has another copy than its leader's."""
    return copies is not None and len(copies.members) > 1


def is_in_sync(copies: RegionCopies | None) -> bool:
    """Whether the set has another copy than the leader's."""
    return copies is not None and any(copy.role == "in-sync" for copy in copies.members)


def is_learner(order: CreateRegion | OpenRegion) -> bool:
    """Whether the root of the order is that of a learner."""
    members = () if order.copies is None else order.copies.members
    return any(copy.root == order.root and copy.role == "learner" for copy in members)


def set_of(copies: RegionCopies, epoch: int) -> CopySet:
    """The set of the leader of that epoch."""
    names = {role: frozenset[CopyName]() for role in ("leader", "in-sync", "learner")}
    for copy in copies.members:
        names[copy.role] |= {name_of(copy)}
    in_sync = names["leader"] | names["in-sync"]
    eligible = frozenset(name_of(copy) for copy in copies.members if copy.eligible)
    return CopySet(copies.version, epoch, in_sync, names["learner"], eligible)


def name_of(copy: OrderedCopy) -> CopyName:
    return CopyName(copy.node, copy.root)


def leader_of(copies: RegionCopies) -> CopyName:
    """The name of the leader's copy."""
    (leader,) = (copy for copy in copies.members if copy.role == "leader")
    return name_of(leader)


def addresses(copies: RegionCopies) -> Mapping[CopyName, str]:
    """The URLs of nodes that are registered, by copy."""
    return {name_of(copy): copy.address for copy in copies.members if copy.address is not None}


def with_change(
    copies: RegionCopies, change: CopyChange, version: int, *, eligible: bool = False
) -> RegionCopies:
    """The copies once *change* was made, which gave them that version. *eligible*: the copy that
    has left may lead. With the minimum in sync no copy is eligible any more."""
    role: CopyStanding = "in-sync" if change.change == "join" else "learner"
    standing = {"role": role, "eligible": eligible}
    members = [
        copy.model_copy(update=standing) if name_of(copy) == (change.node, change.root) else copy
        for copy in copies.members
    ]
    if sum(copy.role != "learner" for copy in members) >= copies.min_in_sync:
        members = [copy.model_copy(update={"eligible": False}) for copy in members]
    update = {"members": members, "version": version, "last_leaves": False}
    return copies.model_copy(update=update)


def must_fit(order: CreateRegion | OpenRegion) -> None:
    """Raises Refused for an order whose root has not the role that it names, and for a region with
    copies of an engine without a log."""
    if order.copies is None:
        if order.role == "copy":
            raise Refused("invalid-request", reason="a copy needs to be told of the others")
        return
    leaders = [copy for copy in order.copies.members if copy.role == "leader"]
    own_roles = {copy.role == "leader" for copy in order.copies.members if copy.root == order.root}
    if len(leaders) != 1 or (order.role == "leader") not in own_roles:
        facts = {"region_id": order.region_id, "root": order.root, "role": order.role}
        raise Refused("invalid-request", reason="the copies do not fit the order", **facts)
    if order.engine != LSM and (order.role == "copy" or has_others(order.copies)):
        what = f"a region of the engine {order.engine} with copies"
        raise Refused("unsupported", what=what, region_id=order.region_id)
