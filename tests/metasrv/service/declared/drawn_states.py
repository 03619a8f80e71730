"""Hypothesis strategies for declared states of few names, so that two of them have much in
common."""

from typing import Any

from hypothesis import strategies as st

from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import to_json
from metasrv_base.wire.api.placing.placements import StorageProfileSpec
from metasrv_base.wire.api.tables import HashPartition
from metasrv_base.wire.language.declared import (
    DeclaredCatalog,
    DeclaredColumn,
    DeclaredConstraint,
    DeclaredIndex,
    DeclaredPlacement,
    DeclaredSchema,
    DeclaredTable,
    DeclaredTablespace,
    DesiredState,
)
from tests.metasrv_base.schema.values import values

COLUMNS = ("a", "b", "c", "d")
TYPES = ("int32", "int64", "string", "decimal(10,2)", "timestamp(ms)")
NUMBERS = ("int32", "int64", "decimal(10,2)")
booleans = st.booleans()
rarely = st.sampled_from((False, False, False, True))


def some(names: tuple[str, ...], least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True, min_size=least)


@st.composite
def columns(draw: st.DrawFn, name: str) -> DeclaredColumn:
    type = parse_type(draw(st.sampled_from(TYPES)))
    default: Any = None
    nullable = draw(booleans)
    if draw(booleans) or not nullable:
        default = to_json(type, draw(values(type)))
    earlier = draw(st.sampled_from(COLUMNS)) if draw(rarely) else None
    return DeclaredColumn(
        name=name, type=type.text, nullable=nullable, default=default, renamed_from=earlier
    )


@st.composite
def tables(draw: st.DrawFn, name: str, spaces: tuple[str, ...]) -> DeclaredTable:
    others = [draw(columns(each)) for each in draw(some(COLUMNS, 1))]
    key = DeclaredColumn(name="id", type="int64", nullable=False)
    names = tuple(each.name for each in others)
    numbers = [each.name for each in others if each.type in NUMBERS]
    count = draw(st.sampled_from((None, None, None, 2)))
    indexes = [
        DeclaredIndex(
            name=index,
            columns=tuple(draw(st.lists(st.sampled_from(names), min_size=1, unique=True))),
            unique=count is None and draw(booleans),
        )
        for index in draw(some(("i", "j")))
    ]
    constraints = [
        DeclaredConstraint(
            name=rule,
            check=f"{draw(st.sampled_from(numbers))} {draw(st.sampled_from('<>'))} 5",
            not_valid=draw(booleans),
        )
        for rule in (draw(some(("k", "l"))) if numbers else ())
    ]
    settable: list[str] = draw(some(("comment", "app.o")))
    options: dict[str, str] = {each: draw(st.sampled_from(("x", "y"))) for each in settable}
    partition = None if count is None else HashPartition(by="hash", columns=("id",), count=count)
    return DeclaredTable(
        name=name,
        columns=(key, *others),
        primary_key=("id",),
        partition=partition,
        options=options,
        tablespace=draw(st.sampled_from((None, *spaces))),
        indexes=tuple(indexes),
        constraints=tuple(constraints),
        renamed_from=draw(st.sampled_from(("t", "u", "v"))) if draw(rarely) else None,
    )


@st.composite
def catalogs(draw: st.DrawFn, name: str) -> DeclaredCatalog:
    spaces = tuple(draw(some(("fast", "slow"))))
    return DeclaredCatalog(
        name=name,
        tablespaces=tuple(
            DeclaredTablespace(
                name=space,
                comment=draw(st.none() | st.just("x")),
                renamed_from=draw(st.none() | st.sampled_from(("fast", "slow"))),
            )
            for space in spaces
        ),
        schemas=tuple(
            DeclaredSchema(
                name=schema,
                tables=tuple(draw(tables(each, spaces)) for each in draw(some(("t", "u", "v")))),
            )
            for schema in draw(some(("public", "shop"), 1))
        ),
    )


@st.composite
def states(draw: st.DrawFn) -> DesiredState:
    profiles = (StorageProfileSpec(name="default", engine="lsm"),)
    return DesiredState(
        placements=tuple(
            DeclaredPlacement(
                name=name,
                comment=draw(st.none() | st.just("x")),
                storage_profiles=profiles,
                preferred_zones=draw(st.sampled_from(((), ("a",), ("b", "a")))),
                renamed_from=draw(st.none() | st.sampled_from(("hot", "cold"))),
            )
            for name in draw(some(("hot", "cold")))
        ),
        catalogs=tuple(draw(catalogs(each)) for each in draw(some(("main", "other"), 1))),
    )


@st.composite
def pairs(draw: st.DrawFn) -> tuple[DesiredState, DesiredState]:
    """Two states; many tables of the second are those of the first with some other parts."""
    first, second = draw(states()), draw(states())
    there = {
        (catalog.name, schema.name, table.name): table
        for catalog in first.catalogs
        for schema in catalog.schemas
        for table in schema.tables
    }
    changed = tuple(
        catalog.model_copy(
            update={
                "schemas": tuple(
                    schema.model_copy(
                        update={
                            "tables": tuple(
                                _mixed(
                                    draw, there.get((catalog.name, schema.name, each.name)), each
                                )
                                for each in schema.tables
                            )
                        }
                    )
                    for schema in catalog.schemas
                )
            }
        )
        for catalog in second.catalogs
    )
    return first, second.model_copy(update={"catalogs": changed})


def _mixed(draw: st.DrawFn, old: DeclaredTable | None, new: DeclaredTable) -> DeclaredTable:
    """The new table with parts of the old one; columns go with what is over them."""
    if old is None:
        return new
    stays = {"partition": old.partition, "tablespace": None}
    match draw(st.sampled_from(("columns", "indexes", "rules", "options", "bare"))):
        case "columns":
            return new.model_copy(update={**stays, "indexes": (), "constraints": ()})
        case "indexes":
            return old.model_copy(update={"indexes": old.indexes[1:], "tablespace": None})
        case "rules":
            rules = tuple(
                each.model_copy(update={"not_valid": False}) for each in old.constraints[:1]
            )
            return old.model_copy(update={"constraints": rules, "tablespace": None})
        case "options":
            return old.model_copy(update={"options": new.options, "tablespace": None})
        case _:
            return new.model_copy(update=stays)
