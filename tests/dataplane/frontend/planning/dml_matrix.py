"""Every row that is written in one stage of a change and changed in a later one, each stage by each
schema version that is in use there. What plans is the frontends' own planner; the versions are
those that a procedure publishes; a region is a map, with the rule of a backfill (P5).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.entries import ReadEntry
from dataplane.frontend.planning.row_input import Op
from keys.model.tables import ConstraintKind, TableInfo
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, Refused
from metasrv_base.wire.node.batches import OP_DELETE
from tests.dataplane.frontend.planning.dml_ways import Stage, Version
from tests.dataplane.frontend.planning.model import ModelRegion

KEY, A = "c1", "c2"
"""Fields of the primary key and of the column that indexes and constraints are over."""
VALUES: Mapping[str, Any] = {KEY: 1, A: 10, "c3": "x", "c4": 5, "c5": 6}
OTHER: Mapping[str, Any] = {KEY: 2, A: 20, "c3": "o", "c4": 7, "c5": 7}
"""A row that is there from the beginning, and that nobody touches."""


class Unset(Enum):
    """A value that nobody gave: it reads as the column's origin default."""

    UNSET = "unset"


UNSET = Unset.UNSET


@dataclass
class MarkedRegion(ModelRegion):
    """It fills origin defaults in, keeps tombstones of entries, and takes those of a backfill."""

    origins: dict[str, Any] = field(default_factory=dict)
    gone: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """Family and key -> version of the tombstone."""

    def read(self, schema: Schema, keys: Sequence[bytes]) -> pa.RecordBatch:
        held = self.rows
        self.rows = {key: (v, {**self.origins, **values}) for key, (v, values) in held.items()}
        try:
            return super().read(schema, keys)
        finally:
            self.rows = held

    def _put(self, family: int, key: bytes, change: dict[str, Any]) -> None:
        super()._put(family, key, change)
        if family and change["_op"] == OP_DELETE:
            self.gone[family, key] = self.version
        elif change["_op"] != OP_DELETE and not family:  # a null that was said is no missing value
            said = {name: value for name, value in change.items() if not name.startswith("_")}
            self.rows[key] = (self.version, said)

    def snapshot(self, schema: Schema) -> dict[int, dict[bytes, ReadEntry]]:
        """Returns the entries that a backfill makes of the rows as they are, with their
        versions."""
        return {
            index.id: {
                entry: ReadEntry(self.rows[row][0], row)
                for entry, row in self.should_have(schema, index.id).items()
            }
            for index in schema.indexes
        }

    def ingest(self, made: Mapping[int, Mapping[bytes, ReadEntry]]) -> None:
        """Ingests entries; a newer one that exists wins, a tombstone too."""
        for family, entries in made.items():
            held = self.entries.setdefault(family, {})
            for key, entry in entries.items():
                known = held.get(key)
                newest = max(self.gone.get((family, key), 0), 0 if known is None else known.version)
                if entry.version > newest:
                    held[key] = entry


class Undone(Exception):  # no error: rows are looked at, and the change goes back
    """A row does not satisfy what is about to be promised of every row."""


@dataclass
class Life:
    """The row that is looked at, by what users have said of it; and the region it lives in."""

    region: MarkedRegion
    truth: dict[str, Any] | None = None
    """By field; None: there is no row."""
    other: Mapping[str, Any] = field(default_factory=dict)
    """The row that nobody touches, by field."""
    made: Mapping[int, Mapping[bytes, ReadEntry]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def copy(self) -> "Life":
        """To be lived otherwise; a row or an entry is never changed in place."""
        region = self.region
        mine = replace(
            region,
            rows=dict(region.rows),
            entries={family: dict(held) for family, held in region.entries.items()},
            origins=dict(region.origins),
            gone=dict(region.gone),
        )
        truth = None if self.truth is None else dict(self.truth)
        return replace(self, region=mine, truth=truth, wrong=list(self.wrong))

    def insert(self, version: Version) -> None:
        fields = version.fields
        values = {field: VALUES[field] for field in fields}
        self._run(version, Op.INSERT, values)
        self.truth = {**dict.fromkeys(VALUES, UNSET), **version.filled, **values}

    def update(self, version: Version, **said: Any) -> None:
        """*said* by field; what users of that version do not know, nobody says."""
        values = {field: value for field, value in said.items() if field in version.fields}
        if values and self.truth is not None:
            self._run(version, Op.UPDATE, {KEY: 1, **values})
            self.truth.update(values)

    def update_and_back(self, version: Version) -> None:
        for value in (11, VALUES[A]):
            self.update(version, c2=value)

    def put(self, version: Version) -> None:
        """Another row of that key: what users do not know of the old one stays."""
        values = {field: value for field, value in OTHER.items() if field in version.fields}
        values |= {KEY: 1, A: 12}
        self._run(version, Op.UPSERT, values)
        unknown = {**dict.fromkeys(VALUES, UNSET), **version.filled}
        self.truth = {**(self.truth or unknown), **values}

    def delete(self, version: Version) -> None:
        self._run(version, Op.DELETE, {KEY: 1})
        self.truth = None

    def breaks(self, version: Version, value: Any) -> None:
        """A value that a constraint forbids, once it is there."""
        rules = [one for one in version.schema.rules if one.columns[0].field == A]
        required = not next(c for c in version.schema.layout.columns if c.field == A).nullable
        try:
            self.update(version, c2=value)
        except Refused:
            self.expect(bool(rules or required), "refused, though nothing forbids it")
        else:
            self.expect(not (rules or required), "taken, though it is forbidden")

    def look(self, used: Sequence[Version]) -> None:
        """Rows as every version in use shows them, and the entries of every index."""
        for version in used:
            shown = {row["id"]: row for row in self._shown(version)}
            wanted = {row["id"]: row for row in self._wanted(version)}
            self.expect(shown == wanted, f"shows {shown}, not {wanted}")
        newest = used[-1].schema
        for index in newest.indexes:
            have, should = self.region.index(index.id), self.region.should_have(newest, index.id)
            self.expect(have.items() <= should.items(), f"entries without a row: {have}")
            visible = any(
                one.id == index.id and one.does.visible for v in used for one in v.schema.indexes
            )
            self.expect(not visible or have == should, f"entries {have}, not {should}")

    def begin(self, stage: Stage) -> None:
        self.region.origins |= {
            f"c{column.id}": column.origin_default
            for version in stage.used
            for column in version.info.columns
        }
        if stage.is_reorg:
            self._validate(stage.used[-1].info)
            self.made = self.region.snapshot(stage.used[-1].schema)

    def end(self, stage: Stage) -> None:
        if stage.is_reorg:
            self.region.ingest(self.made)
        self.look(stage.used)

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    def _validate(self, info: TableInfo) -> None:
        """Validates constraints as regions do before they are public; the one row may violate
        them."""
        held = None if self.truth is None else self.truth.get(A)
        for one in info.constraints:
            if one.holds or held is UNSET or self.truth is None:
                continue
            is_null = one.kind is ConstraintKind.NOT_NULL and held is None
            if is_null or (one.kind is ConstraintKind.CHECK and held is not None and held <= 0):
                raise Undone

    def _run(self, version: Version, op: Op, values: Mapping[str, Any]) -> None:
        names = version.fields
        row = {names[field]: value for field, value in values.items()}
        self.region.run(version.schema, op, [row])

    def _shown(self, version: Version) -> list[dict[str, Any]]:
        held = self.region.rows
        full = {k: (v, {**self.region.origins, **values}) for k, (v, values) in held.items()}
        return ModelRegion(rows=full).shown(version.schema)

    def _wanted(self, version: Version) -> Iterator[dict[str, Any]]:
        origins = self.region.origins
        for truth in (self.truth, self.other):
            if truth is not None:
                yield {
                    name: origins.get(field) if truth[field] is UNSET else truth[field]
                    for field, name in version.fields.items()
                }


def born(stages: Sequence[Stage]) -> Life:
    """The first version, with the row that nobody touches."""
    first = stages[0].used[0]
    life = Life(MarkedRegion())
    life.begin(stages[0])
    life._run(first, Op.INSERT, {field: OTHER[field] for field in first.fields})
    life.other = {field: OTHER[field] if field in first.fields else UNSET for field in OTHER}
    return life


Act = Callable[[Life, Version], None]
CHANGES: Mapping[str, Act] = {
    "its indexed column changed": lambda life, at: life.update(at, c2=11),
    "another column changed": lambda life, at: life.update(at, c3="y"),
    "changed and changed back": lambda life, at: life.update_and_back(at),
    "a column that comes or goes changed": lambda life, at: life.update(at, c4=8, c5=9),
    "put anew": lambda life, at: life.put(at),
    "deleted": lambda life, at: life.delete(at),
    "set to null": lambda life, at: life.breaks(at, None),
    "set below zero": lambda life, at: life.breaks(at, -1),
}


def faults(stages: Sequence[Stage], changes: Mapping[str, Act]) -> tuple[list[str], int]:
    """Every cell that goes wrong, in words; and how many were lived."""
    found: list[str] = []
    cells = 0
    before = born(stages)
    for place, stage in enumerate(stages):
        before.begin(stage)
        for writer in stage.used:
            written = before.copy()
            written.insert(writer)
            name = f"inserted in {stage.name} by version {writer.schema.version}"
            for cell, wrong in _changed(stages, place, written, changes):
                cells += 1
                found += [f"{name}, {cell}: {one}" for one in wrong]
        before.end(stage)
    return found, cells


def _changed(
    stages: Sequence[Stage], place: int, life: Life, changes: Mapping[str, Act]
) -> Iterator[tuple[str, list[str]]]:
    """From *place* on, where the row has just been written."""
    for later in range(place, len(stages)):
        stage = stages[later]
        try:
            if later > place:
                life.begin(stage)
            for version in () if stage.is_known else stage.used:
                for what, act in changes.items():
                    cell = f"{what} in {stage.name} by version {version.schema.version}"
                    yield cell, _lived(stages, later, life.copy(), (act, version))
            life.end(stage)
        except Undone:
            return


def _lived(
    stages: Sequence[Stage], place: int, life: Life, change: tuple[Act, Version]
) -> list[str]:
    """Returns the faults seen from the change on, to the end."""
    act, version = change
    try:
        act(life, version)
        life.look(stages[place].used)
        life.end(stages[place])
        for stage in stages[place + 1 :]:
            life.begin(stage)
            life.end(stage)
    except Undone:
        return life.wrong
    except (Conflict, Refused) as error:
        return [*life.wrong, f"{error.code} {error.facts}"]
    _promised(stages[-1].used[-1].info, life)
    return life.wrong


def _promised(info: TableInfo, life: Life) -> None:
    """Checks what holds for every row in the end on the one row of this life."""
    if life.truth is None:
        return
    value = life.truth[A]
    required = next(not column.nullable for column in info.columns if f"c{column.id}" == A)
    life.expect(not (required and value is None), "null in a column that is never null")
    for one in info.constraints:
        if one.kind is ConstraintKind.CHECK and one.state is ElementState.PUBLIC:
            life.expect(value is None or value > 0, f"{value} breaks a check that is public")
