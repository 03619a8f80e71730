"""A checksum scans a region in memory that it has reserved."""

import pytest

from dataplane.datanode.regions.rows import RowService
from dataplane.datanode.regions.scan_slots import ReaderKind
from dataplane.frontend.planning.row_input import Op
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.batches import ChecksumRequest
from tests.dataplane.frontend.bench import T, running

READ_BYTES = 1 << 20
STREAM_BYTES = READ_BYTES // 4


async def test_given_no_memory_for_scans_when_summed_up_then_it_is_refused_until_there_is() -> None:
    async with running() as bench:
        rows = [{"id": one, "a": one, "b": "x"} for one in range(100)]
        await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
        (region,), service = bench.table.regions, RowService(bench.node, READ_BYTES)
        wanted = ChecksumRequest(table_id=bench.table.id, schema_version=1, epoch=region.epoch)

        with service._scans.slot(ReaderKind.STREAM, STREAM_BYTES // 2):
            with pytest.raises(Unavailable, match="memory"):
                await service.checksum(int(region.region_id), wanted)
            refused = service.read_bytes
        found = await service.checksum(int(region.region_id), wanted)

    assert refused == STREAM_BYTES // 2, "only the other reader has memory"
    assert found.rows == 100
    assert service.read_bytes == 0
