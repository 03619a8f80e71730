"""The regions that a node reported, by id, over the columns of its heartbeat."""

from collections.abc import Iterator, Mapping
from itertools import islice

from metasrv_base.wire.node.nodes import RegionColumns, RegionStat


class RegionReport(Mapping[str, RegionStat]):
    """One report, as it was sent. It keeps the columns, and makes the statistics of a region when
    asked for them: 50,000 kept objects would cost every garbage collection some 50 ms."""

    def __init__(self, columns: RegionColumns) -> None:
        self._columns = columns
        self._positions = {region: position for position, region in enumerate(columns.region_id)}

    def __getitem__(self, region_id: str) -> RegionStat:
        return self._columns.stat(self._positions[region_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def is_open(self, region_id: str, epoch: int) -> bool:
        """Whether the node has it open at *epoch*. Makes no object."""
        position = self._positions.get(region_id)
        columns = self._columns
        return position is not None and (columns.epoch[position], columns.state[position]) == (
            epoch,
            "open",
        )

    def lost(self, limit: int) -> dict[str, int]:
        """Region id -> epoch of at most *limit* regions that it reports as lost. Makes no object
        of the others."""
        columns = self._columns
        states = enumerate(columns.state)
        positions = islice((number for number, state in states if state == "lost"), limit)
        return {columns.region_id[number]: columns.epoch[number] for number in positions}

    def __contains__(self, region_id: object) -> bool:
        return region_id in self._positions
