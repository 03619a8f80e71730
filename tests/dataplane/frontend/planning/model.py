"""A region as a plain map, for what a batch does to it: rows by key, entries by index and key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.entries import ReadEntry
from dataplane.frontend.planning.planning import Known, RegionStatement, reads_rows
from dataplane.frontend.planning.row_input import Op, from_rows
from metasrv_base.errors import Conflict
from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.wire.node.batches import ABSENT, OP_DELETE

Values = Mapping[str, Any]


@dataclass
class ModelRegion:
    """`rows`: key -> (version, values by field). `entries`: family -> key -> Entry."""

    rows: dict[bytes, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    entries: dict[int, dict[bytes, ReadEntry]] = field(default_factory=dict)
    version: int = 0

    def run(self, schema: Schema, op: Op, rows: Sequence[Values], *, careful: bool = False) -> None:
        """One statement, as a frontend runs it. Raises what the planner or the region says."""
        given = from_rows(schema.layout, rows, op)
        statement = RegionStatement(schema, op, given)
        found = None
        if careful or reads_rows(schema, op):
            found = self.read(schema, given.keys.to_pylist())
        wanted = statement.entries_to_read(found, puts=careful)
        entries = {
            family: {key: held[key] for key in keys if key in held}
            for family, keys in wanted.items()
            for held in [self.entries.get(family, {})]
        }
        self.apply(statement.plan(Known(found, entries)))

    def read(self, schema: Schema, keys: Sequence[bytes]) -> pa.RecordBatch:
        """Aligned with *keys*."""
        held = [self.rows.get(key) for key in keys]
        versions = pa.array([one and one[0] for one in held], pa.int64())
        columns: dict[str, pa.Array] = {"_version": versions}
        for one in schema.columns:
            name = one.column.field
            values = [one_row and one_row[1].get(name) for one_row in held]
            columns[name] = pa.array(values, one.column.type.arrow)
        return pa.RecordBatch.from_pydict(columns)

    def apply(self, batch: pa.RecordBatch) -> None:
        """All of it or nothing. Raises Conflict."""
        changes = batch.to_pylist()
        keys = [(one.get("_family") or 0, one["_key"]) for one in changes]
        assert len(set(keys)) == len(keys), "a key stands twice in one batch"
        for (family, key), one in zip(keys, changes, strict=True):
            if (expected := one.get("_expect")) is not None and expected != self._at(family, key):
                raise Conflict("version-mismatch", keys=[key.hex()])
        self.version += 1
        for (family, key), one in zip(keys, changes, strict=True):
            self._put(family, key, one)

    def index(self, family: int) -> dict[bytes, bytes]:
        """Entry -> row."""
        return {key: entry.row for key, entry in self.entries.get(family, {}).items()}

    def should_have(self, schema: Schema, family: int) -> dict[bytes, bytes]:
        """Returns the entries that an index of all rows must have, computed by hand."""
        (index,) = (one for one in schema.indexes if one.id == family)
        return {
            encode_entry(
                index.types,
                [values.get(column.field) for column in index.columns],
                key,
                unique=index.unique,
            ): key
            for key, (_, values) in self.rows.items()
        }

    def shown(self, schema: Schema) -> list[dict[str, Any]]:
        """Rows as users see them, by key."""
        names = {one.field: one.name for one in schema.layout.columns}
        return [
            {name: values.get(id) for id, name in names.items()}
            for _, (_, values) in sorted(self.rows.items())
        ]

    def _at(self, family: int, key: bytes) -> int:
        if family:
            entry = self.entries.get(family, {}).get(key)
            return ABSENT if entry is None else entry.version
        return self.rows[key][0] if key in self.rows else ABSENT

    def _put(self, family: int, key: bytes, change: dict[str, Any]) -> None:
        gone = change["_op"] == OP_DELETE
        if family:
            held = self.entries.setdefault(family, {})
            held.pop(key, None)
            if not gone:
                held[key] = ReadEntry(self.version, change["_row"])
            return
        self.rows.pop(key, None)
        if not gone:
            values = {n: v for n, v in change.items() if not n.startswith("_") and v is not None}
            self.rows[key] = (self.version, values)
