"""Real datanodes under a fake metasrv: regions are ordered by the test, routes are what it says."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from base.wire.orders import CreateRegion, OpenRegion, RegionColumn
from base.wire.tables import HashPartition, RegionRouteBody, TableBody, TableSpec
from tests.datanode.process import DatanodeProcess
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import Node
from tests.sdk.catalog import TABLE_ID, FakeCatalog, region


@dataclass
class RealNodes:
    metasrv: FakeMetasrv
    processes: list[DatanodeProcess]
    nodes: list[Node]

    def create(self, catalog: FakeCatalog, spec: TableSpec) -> None:
        """Every region of the table, spread over the nodes in turn."""
        rule = spec.partition
        count = rule.count if isinstance(rule, HashPartition) else 1
        routes = [region(number, self._at(number).url) for number in range(count)]
        catalog.make(spec, routes)
        assert catalog.table is not None
        for route in routes:
            self.open(catalog.table, route, self._at(route.number))

    def tell(self, catalog: FakeCatalog) -> None:
        """Every region of the table is opened again, as the catalog has the table now."""
        assert catalog.table is not None
        for route in catalog.table.regions:
            self.open(catalog.table, route, self._at(route.number), borrow="")

    def open(
        self, table: TableBody, route: RegionRouteBody, node: Node, borrow: str | None = None
    ) -> None:
        """Create it, or open it at this epoch, over another node's root if one is named."""
        self.metasrv.wait_for(lambda: any(b.node_id == node.node_id for b in self.metasrv.heard))
        columns = [
            RegionColumn(id=one.id, type=one.type, nullable=one.nullable) for one in table.columns
        ]
        ids = {one.name: one.id for one in table.columns}
        node.number += 1
        common = {
            "number": node.number,
            "region_id": route.region_id,
            "epoch": route.epoch,
            "root": root_of(node.root, route),
            "table_id": TABLE_ID,
            "schema_version": table.schema_version,
            "schema_floor": 0,
            "columns": columns,
            "key_columns": [ids[name] for name in table.primary_key],
            "lease": self.metasrv.lease_for(node.node_id),
        }
        order = (
            OpenRegion.model_validate({**common, "borrows": [borrow] if borrow else []})
            if borrow is not None
            else CreateRegion.model_validate(common)
        )
        (result,) = node.order(order).results
        assert result.error is None, result.error

    def _at(self, number: int) -> Node:
        return self.nodes[number % len(self.nodes)]


def root_of(node_root: str, route: RegionRouteBody) -> str:
    return f"{node_root}/{route.region_id}"


@contextmanager
def real_nodes(folder: Path, count: int) -> Iterator[RealNodes]:
    with ExitStack() as stack:
        metasrv = stack.enter_context(FakeMetasrv())
        processes = [
            DatanodeProcess(f"dn-{number}", folder / f"dn-{number}", metasrv.url).start()
            for number in range(1, count + 1)
        ]
        for process in processes:
            stack.callback(process.close)
        nodes = [
            stack.enter_context(Node(one.url, one.node_id, one.root, metasrv)) for one in processes
        ]
        yield RealNodes(metasrv, processes, nodes)
