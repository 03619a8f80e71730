"""Files of rows as users bring them, and a job that loads them into regions on a local disk."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.adoption import Ingest
from metasrv_base.schema.partition import HashRule, RangeRule
from metasrv_base.wire.node.jobs import LoadColumn, LoadedRegion, LoadJob, LoadRegion, RowCheck
from metasrv_base.wire.node.orders import RegionColumn
from tests.dataplane.region.rig import SPEC, place

ID = LoadColumn(stored=RegionColumn(id=1, type="int64", nullable=False), name="id")
NOTE = LoadColumn(stored=RegionColumn(id=2, type="string", nullable=True), name="note")
ONE_REGION = HashRule(columns=(1,), count=1)
PROCEDURE = "p1"


def brought(path: Path, rows: pa.Table, group_rows: int = 1 << 20) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, row_group_size=group_rows)
    return str(path)


def numbered(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [f"n{id}" for id in ids]})


def load_job(
    paths: Sequence[str],
    regions: Sequence[LoadRegion] = (),
    columns: Sequence[LoadColumn] = (ID, NOTE),
    checks: Sequence[RowCheck] = (),
    partition: HashRule | RangeRule = ONE_REGION,
) -> LoadJob:
    return LoadJob(
        job_id=str(uuid.uuid4()),
        procedure=PROCEDURE,
        attempt="attempts/a1",
        paths=list(paths),
        folders=["/"],
        columns=list(columns),
        key=[ID.stored.id],
        partition=partition,
        checks=list(checks),
        regions=list(regions),
    )


@dataclass
class Table:
    """Its regions, each with a version that is reserved for what comes."""

    folder: Path
    regions: list[Region] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def add(self, count: int) -> None:
        for number in range(len(self.regions), len(self.regions) + count):
            region_id = SPEC.region_id + number
            where = place(LocalDisk(), str(self.folder / "regions" / str(region_id)))
            spec = SPEC.model_copy(update={"region_id": region_id})
            region = Region.create(where, spec, epoch=1)
            known = RegionSchema(1, 1, SPEC.columns)
            self.regions.append(region)
            self.versions.append(region.set_schema(known, PROCEDURE, reserves=True))

    @property
    def wanted(self) -> list[LoadRegion]:
        pairs = zip(self.regions, self.versions, strict=True)
        return [
            LoadRegion(number=number, root=region.place.root, version=version)
            for number, (region, version) in enumerate(pairs)
        ]

    def take(self, loaded: Sequence[LoadedRegion]) -> None:
        for one in loaded:
            source = Ingest(PROCEDURE, "attempts/a1", ROWS, PROCEDURE, one.files)
            assert self.regions[one.number].file_ingest.ingest(source)

    def notes(self) -> dict[int, str | None]:
        """Returns the notes of all rows; asserts that an id is in one region alone."""
        found: dict[int, str | None] = {}
        for region in self.regions:
            for batch in region.reader.scan():
                columns = batch.to_pydict()
                assert not found.keys() & set(columns["c1"])
                found |= zip(columns["c1"], columns["c2"], strict=True)
        return found
