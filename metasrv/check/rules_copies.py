"""Rules about the copies of regions."""

from collections.abc import Iterator

from keys.model.tables import RegionState, TableInfoKey, TableRouteKey
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule, Severity
from procedures.quorum import majority, min_in_sync, minimum_of


def copies(facts: CheckInput) -> Iterator[CheckFault]:
    """A leader that the route also names as a copy in sync or as a learner has two, too."""
    for table_id, route in facts.routes().items():
        for region in route.region_routes:
            if len(set(region.nodes)) < len(region.nodes):
                state = f"region {region.region_id} on {list(region.nodes)}"
                yield CheckFault(str(TableRouteKey(table_id)), state, "one copy on a node")


def enough_in_sync(facts: CheckInput) -> Iterator[CheckFault]:
    """Below the minimum a region takes no writes, and its rows are on fewer disks than its table
    requires: the next lost disk may lose rows."""
    infos = facts.infos()
    for table, region in facts.settled():
        info = infos.get(table.table_id)
        if info is None or info.replicas == 1 or region.state is not RegionState.OPEN:
            continue
        minimum = minimum_of(info, region)
        if len(region.in_sync) < minimum:
            state = f"in sync: {', '.join(region.in_sync)}"
            right = f"{minimum} of {info.replicas} copies"
            yield CheckFault(f"region {region.region_id}", state, right)


def majority_required(facts: CheckInput) -> Iterator[CheckFault]:
    """A table that requires fewer copies than a majority acknowledges rows that the loss of the
    disks of these copies loses, although other copies live."""
    for table_id, info in facts.infos().items():
        minimum, most = min_in_sync(info), majority(info.replicas)
        if minimum < most:
            state = f"min_in_sync {minimum} of {info.replicas} copies"
            yield CheckFault(f"{TableInfoKey(table_id)} {info.full_name}", state, f"{most} or more")


RULES = (
    CheckRule("region-copies", 6, "no node has two copies of a region", copies),
    CheckRule(
        "copies-in-sync",
        1,
        "each region has as many copies in sync as writes need",
        enough_in_sync,
        severity=Severity.WARNING,
    ),
    CheckRule(
        "copies-minimum",
        1,
        "each table requires a majority of its copies in sync for writes",
        majority_required,
        severity=Severity.WARNING,
    ),
)
