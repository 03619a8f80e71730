"""A client that imports files into a table beside its writers: all of their rows come, or none."""

from dataclasses import dataclass

import pyarrow as pa

from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import Known
from tests.sim.clients.writers import KEYS
from tests.sim.cluster.disks import Disks

THINK_MS = 7_000
ROWS = (2, 8)
IMPORTED = "an import that was done"
REFUSED = "an import that left nothing"


@dataclass
class Importer:
    session: Session
    known: Known
    disks: Disks
    writers: int
    """Number of those that write, each to keys of its own."""
    values: int = 0

    async def run(self, imports: int) -> None:
        for number in range(imports):
            await self.session.think(THINK_MS)
            await self._import(f"/imports/{self.session.name}-{number}.parquet")

    async def _import(self, path: str) -> None:
        session, tables = self.session, self.session.tables
        keys = session.random.sample(range(KEYS * self.writers), session.random.randint(*ROWS))
        rows, values = session.oracle.rows(self.known.table_id), dict[int, str]()
        for key in keys:
            self.values += 1
            values[key] = f"{session.name}-{self.values}"
        columns = {"id": pa.array(values, pa.int64()), "v": list(values.values())}
        self.disks.inputs[path] = pa.table(columns)
        written = [rows.begin(key, value, session.now) for key, value in values.items()]
        end = await pursued(
            session,
            lambda key: tables.import_files(self.known.name, [path], idempotency_key=key),
        )
        session.count(IMPORTED if end.error is None else REFUSED)
        for one in written:
            one.refused = end.error is not None
            if end.error is None:
                one.ended = session.now
