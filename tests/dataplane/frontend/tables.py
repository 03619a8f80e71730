"""A table as the feed has it, with elements in whatever state a test is about."""

from typing import Literal

from dataplane.frontend.catalog.schema import Schema
from metasrv_base.elements.states import ElementState
from metasrv_base.schema.partition import HashRule
from metasrv_base.wire.frontend.feed import (
    FeedColumn,
    FeedConstraint,
    FeedIndex,
    FeedRegion,
    FeedTable,
)

ConstraintKind = Literal["not-null", "check", "unique"]
PUBLIC = ElementState.PUBLIC
TABLE_ID = 1024


def column(id: int, name: str, type: str = "int64", **more: object) -> FeedColumn:
    found = {"id": id, "name": name, "type": type, "nullable": True, "state": PUBLIC, **more}
    return FeedColumn.model_validate(found)


def index(id: int, *columns: int, unique: bool = False, state: ElementState = PUBLIC) -> FeedIndex:
    name = f"by_{'_'.join(map(str, columns))}"
    return FeedIndex(id=id, name=name, columns=columns, unique=unique, state=state)


def rule(
    kind: ConstraintKind,
    *columns: int,
    state: ElementState = PUBLIC,
    expression: str | None = None,
) -> FeedConstraint:
    name = f"{kind}_1"
    return FeedConstraint(
        id=1, name=name, kind=kind, columns=columns, expression=expression, state=state
    )


ID = column(1, "id", nullable=False)
A, B = column(2, "a"), column(3, "b", "string")


def feed_table(
    *elements: FeedColumn | FeedIndex | FeedConstraint,
    regions: int = 1,
    schema_version: int = 1,
    leader: str = "dn-1",
    id: int = TABLE_ID,
) -> FeedTable:
    """`id` is the key; without columns among *elements* there are `a: int64` and `b: string`."""
    columns = tuple(one for one in elements if isinstance(one, FeedColumn)) or (A, B)
    return FeedTable(
        id=id,
        catalog="main",
        schema_name="public",
        name="t",
        version=schema_version,
        schema_version=schema_version,
        schema_floor=1,
        columns=(ID, *columns),
        indexes=tuple(one for one in elements if isinstance(one, FeedIndex)),
        constraints=tuple(one for one in elements if isinstance(one, FeedConstraint)),
        primary_key=(1,),
        partition=HashRule(columns=(1,), count=regions),
        regions=tuple(
            FeedRegion(region_id=str(id << 32 | number), leader=leader, epoch=1, state="open")
            for number in range(regions)
        ),
    )


def schema_of(*elements: FeedColumn | FeedIndex | FeedConstraint) -> Schema:
    return Schema.of(feed_table(*elements))
