"""The counters of one datanode, in a registry of its own."""

from collections import Counter as Counted
from typing import Literal

import pyarrow as pa
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dataplane.datanode.membership.membership import Membership
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.slot import Slot
from dataplane.region.compaction.compaction import Merged

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


MergeRole = Literal["leader", "copy"]
"""The role of a copy whose files are merged; that of a region without others is `leader`."""


class NodeMetrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "datanode_requests",
            "Answers by call and status",
            ["call", "status"],
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "datanode_request_seconds",
            "Time to answer",
            ["call"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self._regions = Gauge(
            "datanode_regions", "Regions by state", ["state"], registry=self._registry
        )
        self.merges = Counter(
            "datanode_merges",
            "Merges of files of a region, by role of this node's copy (leader, copy) and outcome",
            ["role", "outcome"],
            registry=self._registry,
        )
        self._merged_files = Counter(
            "datanode_merged_files",
            "Files merged into others, in every role",
            registry=self._registry,
        )
        self._merged_bytes = Counter(
            "datanode_merged_bytes",
            "Bytes of files that merges read and wrote, in every role",
            ["direction"],
            registry=self._registry,
        )
        self._files = Gauge(
            "datanode_region_files",
            "Files of the open regions: in all, and of the region with most",
            ["of"],
            registry=self._registry,
        )
        self._to_merge = Gauge(
            "datanode_regions_to_merge",
            "Open regions with files to merge",
            registry=self._registry,
        )
        self._arrow_bytes = Gauge(
            "datanode_arrow_bytes",
            "Bytes that Arrow holds: now, and the most so far",
            ["at"],
            registry=self._registry,
        )
        self._add_gauges()

    def _add_gauges(self) -> None:
        self._statements = Gauge(
            "datanode_statement_bytes",
            "Bytes of remembered statements: taken, and allowed",
            ["of"],
            registry=self._registry,
        )
        self._refused = Gauge(
            "datanode_floor_refusals",
            "Batches and reads refused below the floor of their region",
            registry=self._registry,
        )
        self._promises = Counter(
            "datanode_promises",
            "Promises of reads of regions with copies: asked for (received, refused, unanswered)"
            " and given (given, not-here, stale-epoch)",
            ["outcome"],
            registry=self._registry,
        )
        self._waiting = Gauge(
            "datanode_regions_waiting",
            "Regions in which a group of writes is under way, by what it waits for",
            ["on"],
            registry=self._registry,
        )
        self._sequence = Gauge(
            "datanode_heartbeat_sequence", "Heartbeats sent", registry=self._registry
        )

    def refused(self, status: int) -> None:
        """A request without the right token."""
        self.requests.labels("refused", str(status)).inc()

    def promised(self, outcome: str, number: int) -> None:
        self._promises.labels(outcome).inc(number)

    def merged(self, role: MergeRole, done: Merged) -> None:
        self.merges.labels(role, "done").inc()
        self._merged_files.inc(done.files)
        self._merged_bytes.labels("read").inc(done.bytes_read)
        self._merged_bytes.labels("written").inc(done.bytes_written)

    def text(self, regions: NodeRegionSet, membership: Membership) -> bytes:
        """The exposition, with the gauges as they are now."""
        stats = regions.stats()
        states, files = [stat.state for stat in stats], [stat.files for stat in stats]
        for state in ("opening", "open", "lost"):
            self._regions.labels(state).set(states.count(state))
        self._files.labels("all").set(sum(files))
        self._files.labels("largest").set(max(files, default=0))
        self._to_merge.set(sum(map(_is_to_merge, regions)))
        pool = pa.default_memory_pool()
        self._arrow_bytes.labels("now").set(pool.bytes_allocated())
        self._arrow_bytes.labels("peak").set(pool.max_memory() or 0)
        budget = next((slot.owner.region.place.budget for slot in regions if slot.owner), None)
        if budget is not None:
            self._statements.labels("taken").set(budget.statement_bytes)
            self._statements.labels("limit").set(budget.statements_max)
        waits = Counted(map(_waits_on, regions))
        for on in ("disk", "copies"):
            self._waiting.labels(on).set(waits[on])
        self._refused.set(regions.refusals.total)
        self._sequence.set(membership.sequence)
        return generate_latest(self._registry)


def _waits_on(slot: Slot) -> str | None:
    """The part of the write path at which a group is; None: no group is under way."""
    if slot.owner is None or slot.owner.began_ms is None:
        return None
    return "copies" if slot.led is not None and slot.led.waits_for else "disk"


def _is_to_merge(slot: Slot) -> bool:
    owner = slot.owner
    return owner is not None and owner.region.maintenance.is_merge_due()
