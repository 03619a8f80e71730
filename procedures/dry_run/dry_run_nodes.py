"""Nodes and jobs of a rehearsal: every order is noted and taken for done; no row is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from keys.commit.txn import snapshot
from keys.model.tables import RegionState, TableRoute, TableRouteKey
from metasrv_base.engines import MEMORY
from metasrv_base.errors import Unavailable
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.adoption import Inventory
from metasrv_base.wire.node.checks import DataFaults
from metasrv_base.wire.node.copy_sessions import FetchBody
from metasrv_base.wire.node.inputs import Borrowed, BorrowedFile, SealedSegment, Snapshot
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    LoadedRegion,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    ValidateJob,
    ValidateResult,
)
from metasrv_base.wire.node.orders import (
    CreateRegion,
    DataFile,
    OpenRegion,
    Order,
    OrderError,
    OrderResult,
    SetSchema,
)
from procedures.context import Ports
from procedures.dry_run.estimates import RegionSize, SizeOf
from procedures.dry_run.notes import Notes
from procedures.dry_run.overlay_store import OverlayStore
from procedures.dry_run.plan import Blocker, Obstacle, PlannedOrder, PlannedScan
from procedures.ports import Progress, Sender

NO_CHECKSUM = "0" * 8
SOME_VERSION = 1  # of rows: any; what there is nobody knows before the run


@dataclass(frozen=True)
class StageNodes:
    """A living node does what it is told; a dead one is waited for; what is lost stays lost."""

    ports: Ports
    """The real ones: asked, never told."""
    draft: OverlayStore
    size_of: SizeOf
    notes: Notes
    made: set[str] = field(default_factory=set)
    """Regions that this dry run has created."""

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        if not any(
            candidate.node_id == node and candidate.alive
            for candidate in self.ports.placement.nodes()
        ):
            self.notes.waits.append(Blocker(Obstacle.NODE, node))
            raise Unavailable(what="node", name=node)
        self.notes.orders += [PlannedOrder(node, order.op, order.region_id) for order in orders]
        return tuple([await self._result(node, order) for order in orders])

    async def _result(self, node: str, order: Order) -> OrderResult:
        """A region that nobody has reported may have rows."""
        error = floor_version = None
        if isinstance(order, SetSchema):
            size = self.size_of(node, order.region_id)
            is_empty = size is not None and not size.rows
            floor_version = None if is_empty and not order.reserves_version else SOME_VERSION
        if isinstance(order, CreateRegion):
            self.made.add(order.region_id)
        if isinstance(order, OpenRegion) and order.engine == MEMORY:
            # Rows ended with their process, and the procedure ends with that.
            error = None if order.region_id in self.made else _lost(order)
        elif isinstance(order, OpenRegion) and await self._is_lost(order):
            self.notes.waits.append(Blocker(Obstacle.REGION, order.region_id))
            error = _lost(order)
        return OrderResult(
            number=order.number,
            region_id=order.region_id,
            error=error,
            floor_version=floor_version,
        )

    async def _is_lost(self, order: OpenRegion) -> bool:
        route = await self._route(order.table_id)
        return route is not None and any(
            region.state is RegionState.LOST
            for region in route.region_routes
            if region.region_id == order.region_id
        )

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        """Returns one made-up segment: nobody knows the borrowed files before the region is
        open."""
        something = SealedSegment(root="", name="", bytes=0, checksum=NO_CHECKSUM)
        return Borrowed(
            region_id=region_id,
            epoch=1,
            root="",
            columns=[],
            marks=[],
            files=[],
            segments=[something],
        )

    async def fetched(self, node: str, region_id: str) -> FetchBody | None:
        """Returns None: the copies of a dry run are made of nothing."""
        return None

    async def inventory(self, node: str, region_id: int) -> Inventory:
        return await self.ports.nodes.inventory(node, region_id)

    async def snapshot(
        self, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        """Returns one made-up file: a dry run opens no mark, so no node can list files."""
        route = await self._route(table_of(RegionId(int(region_id))))
        regions = () if route is None else route.region_routes
        epoch = next(region.epoch for region in regions if region.region_id == region_id)
        something = BorrowedFile(root="", file=_file_of(self.size_of(node, region_id)))
        return Snapshot(
            region_id=region_id,
            epoch=epoch,
            root=node,
            columns=[],
            mark=mark,
            version=SOME_VERSION,
            files=[something],
        )

    async def _route(self, table_id: int) -> TableRoute | None:
        """Returns the route as the earlier steps of this dry run have left it."""
        key = TableRouteKey(table_id)
        read = await snapshot(self.draft, key, deadline_ms=self.ports.deadline_ms)
        return read.get(key)


@dataclass(frozen=True)
class StageJobs:
    """Rows are those that regions last reported; of what is borrowed nobody has said any."""

    size_of: SizeOf
    notes: Notes

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        self.notes.scans.append(PlannedScan("move", job.region_id, None, None))
        return MoveResult(
            job_id=job.job_id,
            files=[],
            rows_in=0,
            rows_out=0,
            bytes_in=0,
            bytes_out=0,
            copied_files=0,
            rewritten_segments=0,
        )

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        self._scans("backfill", job.snapshot)
        rows = job.snapshot.rows
        return BackfillResult(
            job_id=job.job_id,
            files=[borrowed.file for borrowed in job.snapshot.files],
            rows_in=rows,
            entries=rows,
            bytes_in=job.snapshot.bytes,
            bytes_out=0,
        )

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        self._scans("validate", job.snapshot)
        return ValidateResult(job_id=job.job_id, rows_in=job.snapshot.rows)

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        self._scans("check", job.snapshot)
        rows = job.snapshot.rows
        return CheckResult(job_id=job.job_id, rows_in=rows, entries=0, faults=DataFaults())

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        """Returns one made-up file for every region: nobody knows the files' contents before the
        run."""
        return LoadJobResult(
            job_id=job.job_id,
            input_digest="",
            files_in=0,
            rows_in=0,
            bytes_in=0,
            bytes_out=0,
            regions=[
                LoadedRegion(number=region.number, files=[_file_of(None)]) for region in job.regions
            ],
        )

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        """No job runs."""

    def _scans(self, job: Literal["backfill", "validate", "check"], snapshot: Snapshot) -> None:
        node, region_id = snapshot.root, snapshot.region_id
        size = self.size_of(node, region_id)
        rows, held = (None, None) if size is None else (size.rows, size.bytes)
        self.notes.scans.append(PlannedScan(job, region_id, rows, held))


def _lost(order: OpenRegion) -> OrderError:
    return OrderError(code="region-lost", facts={"region_id": order.region_id})


def _file_of(size: RegionSize | None) -> DataFile:
    """Returns a data file of a region's size; one row for a region without a report, so that it
    is read."""
    return DataFile(
        name="",
        rows=1 if size is None else size.rows,
        bytes=0 if size is None else size.bytes,
        min_key="",
        max_key="",
        min_version=0,
        max_version=0,
        checksum=NO_CHECKSUM,
        footer_bytes=0,
        footer_checksum=NO_CHECKSUM,
        row_checksum=NO_CHECKSUM * 2,
    )
