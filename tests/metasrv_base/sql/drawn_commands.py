"""Hypothesis strategies for commands that SQL can say."""

from typing import Any

from hypothesis import strategies as st
from pydantic import JsonValue

from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import to_json
from metasrv_base.sql import commands as sql
from metasrv_base.wire.api import changes
from metasrv_base.wire.api.placing import placements as placing
from metasrv_base.wire.api.tables import (
    CatalogSpec,
    ColumnSpec,
    HashPartition,
    IndexSpec,
    RangePartition,
    SchemaSpec,
    TableSpec,
)
from tests.metasrv_base.schema.values import types, values

NOW: JsonValue = {"expression": "now()"}

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,6}", fullmatch=True) | st.sampled_from(
    ("primary", "key", "Check", "null", "default", "constraint", "a b", 'say "x"', "date", "é")
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
reasons = st.none() | texts.filter(bool)
numbers = st.integers(1, 1_000)
booleans = st.booleans()


@st.composite
def options(draw: st.DrawFn, least: int = 0) -> dict[str, str]:
    name = st.from_regex(r"[a-z][a-z0-9_]{0,4}(\.[a-z][a-z0-9_-]{0,4})?", fullmatch=True)
    return draw(st.dictionaries(name, texts, min_size=least, max_size=3))


def constants(type: ColumnType) -> st.SearchStrategy[Any]:
    """Values of a type in JSON form."""
    return values(type).map(lambda value: to_json(type, value))


@st.composite
def columns(draw: st.DrawFn, name: str, may_be_now: bool = False) -> ColumnSpec:
    type = draw(types())
    default = st.none() | constants(type)
    if may_be_now:
        default = default | st.just(NOW)
    return ColumnSpec(name=name, type=type.text, nullable=draw(booleans), default=draw(default))


@st.composite
def table_names(draw: st.DrawFn) -> sql.QualifiedTable:
    table, schema, catalog = draw(names), draw(st.none() | names), draw(st.none() | names)
    return sql.QualifiedTable(table, schema, catalog if schema is not None else None)


names_in_catalog = st.builds(sql.NameInCatalog, names, st.none() | names)


@st.composite
def partitions(draw: st.DrawFn, key: list[ColumnSpec]) -> HashPartition | RangePartition | None:
    within = draw(st.lists(st.sampled_from(key), min_size=1, unique_by=lambda spec: spec.name))
    of = tuple(spec.name for spec in within)
    match draw(st.sampled_from(("none", "hash", "range"))):
        case "hash":
            return HashPartition(by="hash", columns=of, count=draw(st.integers(1, 1024)))
        case "range":
            bound = st.tuples(*(constants(parse_type(spec.type)) for spec in within))
            bounds = draw(st.lists(bound, min_size=1, max_size=3))
            return RangePartition(by="range", columns=of, bounds=tuple(bounds))
    return None


@st.composite
def specs(draw: st.DrawFn, name: str) -> TableSpec:
    column_names = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    drawn = [draw(columns(column)) for column in column_names]
    count = draw(st.integers(1, len(drawn)))
    all_of = [
        spec.model_copy(update={"nullable": False}) if number < count else spec
        for number, spec in enumerate(drawn)
    ]
    key = draw(st.permutations(all_of[:count]))
    return TableSpec(
        name=name,
        if_not_exists=draw(booleans),
        columns=tuple(all_of),
        primary_key=tuple(spec.name for spec in key),
        partition=draw(partitions(key)),
        replicas=draw(st.none() | st.integers(1, 3)),
        min_in_sync=draw(st.none() | st.integers(1, 3)),
        options=draw(options()),
        colocation_columns=draw(st.none() | st.just((key[0].name,))),
        storage_profile=draw(st.none() | names),
        tablespace=draw(st.none() | names),
        placement=draw(st.none() | names),
    )


@st.composite
def create_table(draw: st.DrawFn) -> sql.CreateTableStatement:
    table = draw(table_names())
    return sql.CreateTableStatement(table, draw(specs(table.table)))


@st.composite
def operations(draw: st.DrawFn) -> changes.AlterOperation:
    name, other = draw(names), draw(names)
    number = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(
        allow_nan=False, allow_infinity=False
    )
    choices: list[changes.AlterOperation] = [
        changes.AddColumn(
            op="add_column",
            column=draw(columns(name, may_be_now=True)),
            after=draw(st.none() | names),
        ),
        changes.DropColumn(op="drop_column", name=name),
        changes.RenameColumn(op="rename_column", name=name, new_name=other),
        changes.AlterType(op="alter_type", name=name, type=draw(types()).text),
        changes.SetDefault(op="set_default", name=name, default=draw(number | texts | booleans)),
        changes.SetDefault(op="set_default", name=name, default=None),
        changes.SetNullable(op="set_nullable", name=name, nullable=draw(booleans)),
        changes.AddConstraint(
            op="add_constraint",
            name=name,
            check="a > (1 + 2) and b <> ')'",
            not_valid=draw(booleans),
        ),
        changes.AddConstraint(
            op="add_constraint", name=name, not_null=other, not_valid=draw(booleans)
        ),
        changes.ValidateConstraint(op="validate_constraint", name=name),
        changes.DropConstraint(op="drop_constraint", name=name),
        changes.SetOptions(op="set_options", options=dict(draw(options(1)))),
        changes.SetOptions(op="set_options", options=dict.fromkeys(draw(options(1)))),
        changes.SetCopies(op="set_copies", replicas=3, reason=draw(reasons)),
        changes.SetCopies(op="set_copies", replicas="default", min_in_sync=draw(numbers)),
        changes.SetCopies(op="set_copies", min_in_sync="default"),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def alter_table(draw: st.DrawFn) -> sql.AlterTableStatement:
    several = draw(st.lists(operations(), min_size=1, max_size=3))
    request = changes.AlterRequest(operations=tuple(several), if_exists=draw(booleans))
    return sql.AlterTableStatement(draw(table_names()), request)


renames = st.builds(
    sql.RenameTableStatement,
    table_names(),
    st.builds(
        changes.RenameRequest, new_name=names, new_schema=st.none() | names, if_exists=booleans
    )
    | st.builds(
        changes.RenameRequest,
        new_name=names,
        new_schema=st.none() | names,
        exchange=st.just(True),
    ),
)
undrops = st.builds(
    sql.UndropTableStatement,
    table_names(),
    st.builds(
        changes.UndropRequest,
        table_id=st.none() | st.integers(0, 1 << 62),
        new_name=st.none() | names,
    ),
)
indexes = st.builds(
    IndexSpec,
    name=names,
    columns=st.lists(names, min_size=1, max_size=3).map(tuple),
    unique=booleans,
    if_not_exists=booleans,
    not_valid=booleans,
)
profiles = st.builds(
    placing.StorageProfileSpec,
    name=names,
    engine=names,
    options=st.dictionaries(names, st.integers(0, 1 << 40), max_size=2),
)
labels = st.builds(
    placing.LabelConditionSpec.model_validate,
    st.fixed_dictionaries({"label": names, "equals": texts}),
) | st.builds(
    placing.LabelConditionSpec.model_validate,
    st.fixed_dictionaries({"label": names, "in": st.lists(texts, min_size=1, max_size=3)}),
)
filters = st.builds(
    placing.NodeFilterSpec,
    zones=st.lists(texts, min_size=1, max_size=2).map(tuple),
    labels=st.lists(labels, max_size=2).map(tuple),
)
_CLAUSES: dict[str, st.SearchStrategy[Any]] = {
    "replicas": numbers,
    "min_in_sync": numbers,
    "partitions": numbers,
    "storage_profiles": st.lists(profiles, min_size=1, max_size=2).map(tuple),
    "node_filter": filters,
    "preferred_zones": st.lists(texts, max_size=2).map(tuple),
    "comment": texts,
}


@st.composite
def clauses(draw: st.DrawFn, least: int) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(sorted(_CLAUSES)), min_size=least, unique=True))
    return {field: draw(_CLAUSES[field]) for field in chosen}


create_placement = st.builds(
    lambda name, fields, quiet: sql.CreatePlacementStatement(
        placing.PlacementSpec(name=name, if_not_exists=quiet, **fields)
    ),
    names,
    clauses(0),
    booleans,
)
alter_placement = st.builds(
    lambda name, fields, quiet: sql.AlterPlacementStatement(
        name, placing.PlacementPatch(if_exists=quiet, **fields)
    ),
    names,
    clauses(1),
    booleans,
)
tablespaces = st.builds(
    placing.TablespaceSpec, name=names, comment=st.none() | texts, if_not_exists=booleans
)
all_changes: st.SearchStrategy[sql.Change] = st.one_of(
    create_table(),
    alter_table(),
    renames,
    undrops,
    st.builds(sql.DropTableStatement, table_names(), booleans),
    st.builds(sql.TruncateTableStatement, table_names()),
    st.builds(sql.CreateIndexStatement, table_names(), indexes),
    st.builds(sql.ValidateIndexStatement, table_names(), names),
    st.builds(sql.DropIndexStatement, table_names(), names, booleans),
    st.builds(
        sql.CreateSchemaStatement,
        st.none() | names,
        st.builds(SchemaSpec, name=names, if_not_exists=booleans, options=options()),
    ),
    st.builds(sql.DropSchemaStatement, names_in_catalog, booleans, booleans),
    st.builds(
        sql.CreateCatalogStatement,
        st.builds(CatalogSpec, name=names, if_not_exists=booleans, options=options()),
    ),
    st.builds(sql.DropCatalogStatement, names, booleans, booleans),
    create_placement,
    alter_placement,
    st.builds(sql.RenamePlacementStatement, names, names, booleans),
    st.builds(sql.DropPlacementStatement, names, booleans),
    st.builds(sql.CreateTablespaceStatement, st.none() | names, tablespaces),
    st.builds(
        sql.AlterTablespaceStatement,
        names_in_catalog,
        st.builds(placing.TablespacePatch, comment=st.none() | texts, if_exists=booleans),
    ),
    st.builds(sql.RenameTablespaceStatement, names_in_catalog, names, booleans),
    st.builds(sql.DropTablespaceStatement, names_in_catalog, booleans),
)
of_catalog = st.builds(sql.NameInCatalog, names)
select_views = st.builds(
    sql.SelectView,
    names,
    st.none() | st.lists(names, min_size=1, max_size=3).map(tuple),
    st.none() | st.sampled_from(("a = 1", "not (b is null or c in ('x', 'order by'))")),
    st.lists(st.builds(sql.ViewOrder, names, booleans), max_size=2).map(tuple),
    st.none() | st.integers(0, 10_000),
)
shows: st.SearchStrategy[sql.Command] = st.one_of(
    st.sampled_from((sql.Show("catalogs"), sql.Show("placements"))),
    st.builds(sql.Show, st.just("schemas"), st.none() | of_catalog),
    st.builds(sql.Show, st.just("tablespaces"), st.none() | of_catalog),
    st.builds(sql.Show, st.just("tables"), st.none() | names_in_catalog),
    st.builds(sql.Show, st.just("indexes"), table_names()),
    st.builds(sql.ShowCreateTable, table_names()),
    st.builds(sql.DescribeTable, table_names()),
    select_views,
)
all_commands: st.SearchStrategy[sql.Command] = st.one_of(
    all_changes,
    shows,
    st.builds(sql.Explain, all_changes),
    st.just(sql.Begin()),
    st.just(sql.Commit()),
)
