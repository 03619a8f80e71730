"""Rows of a table whose column changes its type, as every version in use writes and reads them.

What plans is the frontends' own planner; the versions are those that a procedure publishes; a
region is a map, which reads what a row lacks as the conversion of what it has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.row_input import Op
from keys.model.tables import Column, TableInfo
from metasrv_base.errors import Conflict, Refused
from metasrv_base.schema.conversion import conversion_of
from metasrv_base.schema.types import parse_type
from procedures.kinds.alter.type_operations import AlterTypeOperation
from tests.dataplane.frontend.planning.dml_matrix import MarkedRegion
from tests.dataplane.frontend.planning.dml_ways import WAYS, Stage, Version
from tests.procedures.harness.tables import table_info

Value = Any
ColumnInput = tuple[str, Value]
"""A type, and what a user gave in it."""


@dataclass(frozen=True)
class TypeChange:
    """Values by what the two types can hold of them."""

    old: str
    new: str
    both: tuple[ColumnInput, ColumnInput]
    old_only: Value | None = None
    new_only: Value | None = None
    default: Value | None = None
    nullable: bool = True

    def stages(self, way: str) -> list[Stage]:
        column = Column(id=2, name="a", type=self.old, nullable=self.nullable, default=self.default)
        key = Column(id=1, name="id", type="int64", nullable=False)
        other = Column(id=3, name="b", type="string", nullable=True)
        bare = table_info(1024, "t", 1)
        info = bare.model_copy(update={"columns": (key, column, other), "next_column_id": 4})
        return WAYS[way](info, (AlterTypeOperation(name="a", type=self.new),))

    def given_at(self, version: Version, place: int) -> Iterator[ColumnInput | None]:
        """Yields what users of a version can give, one of the values of both types included; None:
        nothing."""
        type = type_at(version)
        only = self.old_only if type == self.old else self.new_only
        yield (type, read_as(self.both[place], type))
        if only is not None:
            yield (type, only)
        yield None


def type_at(version: Version) -> str:
    (column,) = (one for one in version.schema.layout.columns if one.name == "a")
    return column.type.text


def read_as(said: ColumnInput, type: str) -> Value:
    """As somebody reads it who knows the column in *type*. Raises Refused."""
    if said[1] is None or said[0] == type:
        return said[1]
    return conversion_of(parse_type(said[0]), parse_type(type)).of_value(said[1])


@dataclass
class ConvertingRegion(MarkedRegion):
    """It reads columns that a row lacks as those that they replace."""

    info: TableInfo | None = None

    def read(self, schema: Schema, keys: Sequence[bytes]) -> pa.RecordBatch:
        held = self.rows
        self.rows = {key: (v, self.full(values)) for key, (v, values) in held.items()}
        try:
            return super().read(schema, keys)
        finally:
            self.rows = held

    def full(self, values: Mapping[str, Any]) -> dict[str, Any]:
        assert self.info is not None, "it was told of a schema"
        return {f"c{one.id}": _had(one, values) for one in self.info.columns}


def _had(column: Column, values: Mapping[str, Any]) -> Value:
    if f"c{column.id}" in values:
        return values[f"c{column.id}"]
    said: ColumnInput = (column.type, column.origin_default)
    for one in column.origin_columns:
        if f"c{one.id}" in values:
            said = (one.type, values[f"c{one.id}"])
            break
    try:
        return read_as(said, column.type)
    except Refused:
        return None


class Undone(Exception):  # no error: rows are looked at, and the change goes back
    """A row has a value that does not convert."""


@dataclass
class Life:
    """One row, by what users have said of it; and the region it lives in."""

    change: TypeChange
    region: ConvertingRegion = field(default_factory=ConvertingRegion)
    said: ColumnInput | None = None
    """None: there is no row."""
    wrong: list[str] = field(default_factory=list)

    def copy(self) -> "Life":
        region = replace(self.region, rows=dict(self.region.rows))
        return replace(self, region=region, wrong=list(self.wrong))

    def begin(self, stage: Stage) -> None:
        """Regions are told before any version is published: of all that is in use."""
        old, new = stage.used[0].info, stage.used[-1].info
        ids = {one.id for one in new.columns}
        columns = (*new.columns, *(one for one in old.columns if one.id not in ids))
        self.region.info = new.model_copy(update={"columns": columns})
        if stage.is_reorg and self.said is not None:
            try:
                read_as(self.said, self.change.new)
            except Refused as error:
                raise Undone from error

    def look(self, stage: Stage) -> None:
        for version in stage.used:
            found = [
                self.region.full(values)[_field(version)] for _, values in self.region.rows.values()
            ]
            if found != [] if self.said is None else found != [_seen(self.said, version)]:
                what = f"{stage.name}, version {version.schema.version}"
                self.wrong.append(f"{what} shows {found}, where {self.said} was said")

    def write(
        self, version: Version, op: Op, said: ColumnInput | None = None, **more: object
    ) -> None:
        """Writes a row; a statement that is refused, or waits for another version, changes
        nothing."""
        row = {"id": 1, **more}
        if said is not None:
            row["a"] = said[1]
        try:
            self.region.run(version.schema, op, [row])
        except (Refused, Conflict) as error:
            self.expect_no(version, said, error)
            return
        if op is Op.DELETE:
            self.said = None
        elif said is not None or op is not Op.UPDATE:
            self.said = said or (self.change.old, self.change.default)
        self.must_have_fitted(version, said)

    def expect_no(self, version: Version, said: ColumnInput | None, error: Exception) -> None:
        names = {one.column.name: one for one in version.schema.columns if one.mirror}
        mirror = names.get("a")
        assert mirror is not None, f"{error} at a version with one type"
        assert said is not None, f"{error}, though nothing was said"
        code = "constraint-violated" if isinstance(error, Refused) else "schema-version-stale"
        assert getattr(error, "code", "") == code, str(error)
        comes = mirror.column.type.text == self.change.new
        assert isinstance(error, Refused) is comes, str(error)
        only = self.change.old_only if comes else self.change.new_only
        assert said[1] == only, f"{said} fits both, and was not taken: {error}"

    def must_have_fitted(self, version: Version, said: ColumnInput | None) -> None:
        hidden = any(one.mirror for one in version.schema.columns)
        if hidden and said is not None and said[1] in (self.change.old_only, self.change.new_only):
            self.wrong.append(f"{said} was taken at version {version.schema.version}")


def _seen(said: ColumnInput, version: Version) -> Value:
    try:
        return read_as(said, type_at(version))
    except Refused:
        return said


def _field(version: Version) -> str:
    (column,) = (one for one in version.schema.layout.columns if one.name == "a")
    return column.field


Act = Callable[[Life, Version, "ColumnInput | None"], None]
ACTS: Mapping[str, Act] = {
    "updated": lambda life, at, said: life.write(at, Op.UPDATE, said, b="y"),
    "put anew": lambda life, at, said: life.write(at, Op.UPSERT, said, b="z"),
    "deleted": lambda life, at, said: life.write(at, Op.DELETE),
}


def cells(change: TypeChange, way: str) -> Iterator[tuple[str, list[str]]]:
    """Each row that is inserted and changed, and what is seen to be wrong of it."""
    stages = change.stages(way)
    for first, stage in enumerate(stages):
        for writer in stage.used:
            for said in change.given_at(writer, 0):
                life = Life(change)
                life.begin(stage)
                life.write(writer, Op.INSERT, said, b="x")
                if life.said is not None:
                    name = f"{said} inserted in {stage.name} by version {writer.schema.version}"
                    for cell, wrong in _changed(change, stages, first, life):
                        yield f"{name}, {cell}", wrong


def _changed(
    change: TypeChange, stages: Sequence[Stage], first: int, life: Life
) -> Iterator[tuple[str, list[str]]]:
    for place in range(first, len(stages)):
        stage = stages[place]
        try:
            if place > first:
                life.begin(stage)
        except Undone:
            return
        life.look(stage)
        for version in stage.used:
            for what, act in ACTS.items():
                for said in _said(what, change, version):
                    changed = life.copy()
                    act(changed, version, said)
                    _to_the_end(changed, stages[place:])
                    cell = f"{what} to {said} in {stage.name} by version {version.schema.version}"
                    yield cell, changed.wrong


def _said(what: str, change: TypeChange, version: Version) -> Iterator[ColumnInput | None]:
    yield from (None,) if what == "deleted" else change.given_at(version, 1)


def _to_the_end(life: Life, stages: Sequence[Stage]) -> None:
    life.look(stages[0])
    try:
        for stage in stages[1:]:
            life.begin(stage)
            life.look(stage)
    except Undone:
        return
