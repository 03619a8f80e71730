"""Rules about reports of nodes and servers, compared with the store."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from keys.model.cluster import ClusterKey
from keys.model.removed import RemovedTableRouteKey
from keys.model.tables import CopyRole, RegionRoute, RegionState
from metasrv.check.check_input import CheckInput, NodeRegion
from metasrv.check.rule import CheckFault, CheckRule, Scope, Severity
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.inspect import InspectedRoot
from procedures.steps.copies.dropped_regions import is_awake
from procedures.steps.orphans.judging import Evidence, RegionFolder, judgements


def _reported(facts: CheckInput) -> Iterator[tuple[str, NodeRegion, RegionRoute | None]]:
    """Yields each region that a node has, with its route; regions that a procedure touches are left
    out. That of a region of a dropped table counts while a move has woken it."""
    busy = facts.busy()
    routes = {r.region_id: r for table in facts.routes().values() for r in table.region_routes}
    routes |= {region.region_id: region for _, region in facts.kept() if is_awake(region)}
    for node, report in facts.world.reports.items():
        for region in report.regions:
            region_id = region.stat.region_id
            if region_id.isdecimal() and table_of(RegionId(int(region_id))) not in busy:
                yield node, region, routes.get(region_id)


def one_leader(facts: CheckInput) -> Iterator[CheckFault]:
    for node, region, route in _reported(facts):
        stat = region.stat
        if route is None or stat.state == "lost":
            continue
        if stat.epoch > route.epoch or (stat.epoch == route.epoch and node not in route.nodes):
            state = f"{stat.state} at epoch {stat.epoch}"
            right = f"led by {route.leader} at epoch {route.epoch}"
            yield CheckFault(f"region {stat.region_id} at {node}", state, right)


def claimed(facts: CheckInput) -> Iterator[CheckFault]:
    """A node that serves a dropped table would still accept rows for it."""
    for node, region, route in _reported(facts):
        if route is None:
            state = f"{region.stat.state}, and no route has it"
            yield CheckFault(f"region {region.stat.region_id} at {node}", state, "closed")


def reported_lost(facts: CheckInput) -> Iterator[CheckFault]:
    for node, region, route in _reported(facts):
        if region.stat.state == "lost" and route is not None and node in route.nodes:
            state = f"{node} cannot read {region.root}"
            subject = f"region {region.stat.region_id} at {node}"
            yield CheckFault(subject, state, "its storage restored")


def _by_id(facts: CheckInput) -> Mapping[str, Mapping[str, Sequence[NodeRegion]]]:
    """The reports of each region, by node."""
    has: dict[str, dict[str, list[NodeRegion]]] = {}
    for node, report in facts.world.reports.items():
        of_node = has[node] = defaultdict[str, list[NodeRegion]](list)
        for region in report.regions:
            of_node[region.stat.region_id].append(region)
    return has


def serving(facts: CheckInput) -> Iterator[CheckFault]:
    by_node = _by_id(facts)
    for _, route in facts.settled():
        if route.state is not RegionState.OPEN or route.leader not in by_node:
            continue
        has = by_node[route.leader].get(route.region_id, ())
        serves = [
            reported
            for reported in has
            if (reported.stat.epoch, reported.stat.state, reported.root)
            == (route.epoch, "open", route.root)
        ]
        if not serves:
            states = [
                f"{reported.stat.state} at epoch {reported.stat.epoch} in {reported.root}"
                for reported in has
            ]
            right = f"open at epoch {route.epoch} in {route.root}"
            subject = f"region {route.region_id} at {route.leader}"
            yield CheckFault(subject, ", ".join(states) or "no such region there", right)


def following(facts: CheckInput) -> Iterator[CheckFault]:
    """A copy of the set that its node does not have stops every write of its region. Learners may
    be on their way."""
    by_node = _by_id(facts)
    for _, route in facts.settled():
        for copy in route.copies if route.state is RegionState.OPEN else ():
            if copy.role is not CopyRole.IN_SYNC or copy.node not in by_node:
                continue
            has = by_node[copy.node].get(route.region_id, ())
            right = (route.epoch, "open", copy.root)
            if all((each.stat.epoch, each.stat.state, each.root) != right for each in has):
                states = [f"{each.stat.state} at epoch {each.stat.epoch}" for each in has]
                subject = f"copy of region {route.region_id} at {copy.node}"
                expected = f"open at epoch {route.epoch} in {copy.root}"
                yield CheckFault(subject, ", ".join(states) or "no such copy there", expected)


def acknowledged(facts: CheckInput) -> Iterator[CheckFault]:
    """A leader is asked before its files are read, so they hold all that it had acknowledged. The
    files alone cannot tell a damaged end of a log from one that a crash cut off."""
    by_node = _by_id(facts)
    for _, route in facts.settled():
        root = facts.world.roots.get(route.root)
        if root is None or not _is_read(root, route):
            continue
        for reported in by_node.get(route.leader, {}).get(route.region_id, ()):
            if reported.root == route.root and reported.stat.version > root.version:
                last = root.segments[-1].path if root.segments else f"{root.root}/wal"
                right = f"{reported.stat.version}, which {route.leader} has acknowledged"
                yield CheckFault(last, f"row versions up to {root.version}", right)


def _is_read(root: InspectedRoot, route: RegionRoute) -> bool:
    """Whether all parts of the region could be read; if not, other rules report it."""
    is_current = root.manifest is not None and root.manifest.epoch == route.epoch
    return is_current and root.error is None and all(segment.found for segment in root.segments)


def one_cluster(facts: CheckInput) -> Iterator[CheckFault]:
    cluster = facts.get(ClusterKey())
    if cluster is None:
        return
    cluster_ids = {node: report.cluster_id for node, report in facts.world.reports.items()}
    cluster_ids |= {url: server.cluster_id for url, server in facts.world.servers.items()}
    for subject, cluster_id in cluster_ids.items():
        if cluster_id not in (None, cluster.cluster_id):
            yield CheckFault(subject, f"of cluster {cluster_id}", cluster.cluster_id)


def servers(facts: CheckInput) -> Iterator[CheckFault]:
    """Servers are asked after the store was read, so they must have its version."""
    version = facts.version()
    for url, server in facts.world.servers.items():
        if version is not None and server.catalog_version < version.version:
            state = f"at catalog version {server.catalog_version}"
            yield CheckFault(url, state, f"version {version.version} or later")


def orphans(facts: CheckInput) -> Iterator[CheckFault]:
    """A failover or purge leaves one if its node is away, a create if it is undone."""
    evidence = _evidence(facts)
    for node, folders in facts.world.folders.items():
        for judgement in judgements(map(RegionFolder.named, sorted(folders)), evidence):
            if not judgement.is_needed:
                state = f"on {node}, and no route claims it"
                yield CheckFault(judgement.folder.root, state, "no such folder")


def _evidence(facts: CheckInput) -> Evidence:
    routes = facts.routes()
    removed = {
        cast("RemovedTableRouteKey", key).table_id: value.route
        for key, value in facts.of(RemovedTableRouteKey).items()
    }
    claimed = set[str]()
    for route in chain(routes.values(), removed.values()):
        for region in route.region_routes:
            claimed.update(region.roots, region.borrows)
    for root in facts.world.roots.values():
        claimed |= set(root.manifest.borrowed_roots) if root.manifest else set()
    stored, cluster = facts.version(), facts.get(ClusterKey())
    version = 0 if stored is None else stored.version
    return Evidence(
        version=version,
        route=lambda table_id: routes.get(table_id) or removed.get(table_id),
        is_busy=facts.busy().__contains__,
        seen_at=version,
        borrowed=frozenset(claimed),
        is_restored=cluster is not None and cluster.restored is not None,
    )


def unseen(facts: CheckInput) -> Iterator[CheckFault]:
    for subject, why in facts.world.unseen.items():
        yield CheckFault(subject, why, "readable")


RULES = (
    CheckRule(
        "cluster-one", 3, "all nodes and servers belong to this cluster", one_cluster, Scope.WORLD
    ),
    CheckRule(
        "region-one-leader",
        6,
        "only the route's leader and copies have a region at the route's epoch",
        one_leader,
        Scope.WORLD,
    ),
    CheckRule("region-readable", 6, "every node can read its regions", reported_lost, Scope.WORLD),
    CheckRule("region-serves", 6, "an open region is open at its leader", serving, Scope.WORLD),
    CheckRule("copy-follows", 6, "a copy of the set is open at its node", following, Scope.WORLD),
    CheckRule(
        "rows-acknowledged", 1, "files hold every acknowledged row", acknowledged, Scope.WORLD
    ),
    CheckRule("region-claimed", 6, "no node has a region that no route has", claimed, Scope.WORLD),
    CheckRule("server-follows", 2, "no server is behind the stored log", servers, Scope.WORLD),
    CheckRule(
        "folder-orphan",
        6,
        "every folder of a region is claimed by a route",
        orphans,
        Scope.WORLD,
        Severity.WARNING,
    ),
    CheckRule(
        "unseen",
        6,
        "all stores, nodes and files could be read",
        unseen,
        Scope.WORLD,
        Severity.WARNING,
    ),
)
