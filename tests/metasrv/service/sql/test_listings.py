"""A table shown as SQL: what makes an equal table, whatever its columns, options and elements."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.model.log import TableCreated
from keys.model.tables import Constraint, ConstraintKind, Index, TableInfo
from metasrv.service.ddl.ddl_create import TableToCreate, table_info
from metasrv.service.ddl.table_placing import placing_of
from metasrv.service.requests.ddl_request import FullTableName
from metasrv.service.sql.listings import listing
from metasrv.service.sql.session import SqlSession
from metasrv_base.sql import commands as sql
from metasrv_base.sql.grammar.statements import statements
from metasrv_base.wire.api.table_rules import validate_spec
from metasrv_base.wire.api.tables import TableSpec
from procedures.ports import NodeView
from procedures.steps.copies.new_routes import table_route
from procedures.steps.existing import alike
from tests.keys.catalog.logs import first_update, update
from tests.metasrv_base.sql.drawn_commands import booleans, names, specs

SESSION = SqlSession("main", "public")
NODE = NodeView(node_id="dn-1", zone="a", root="/r", alive=True, regions=0, disk_free_bytes=1 << 40)


def plain(spec: TableSpec) -> TableSpec:
    """A table that can be made where there is no placement but the default one."""
    within = spec.primary_key[:1] if spec.colocation_columns is not None else None
    nothing = {"placement": None, "storage_profile": None, "tablespace": None}
    nothing |= {"replicas": None, "min_in_sync": None}
    partition = None if within else spec.partition
    update = {**nothing, "colocation_columns": within, "partition": partition, "name": "t"}
    return spec.model_copy(update={**update, "if_not_exists": True})


def made(spec: TableSpec) -> TableInfo:
    table = TableToCreate(FullTableName("main", "public", "t"), spec)
    return table_info(table, placing_of(spec, "main", Catalog()), 1024, 1)


@st.composite
def tables(draw: st.DrawFn) -> TableInfo:
    info = made(draw(specs("t").map(plain).filter(lambda spec: not validate_spec(spec))))
    columns = st.lists(
        st.sampled_from([column.id for column in info.columns]), min_size=1, max_size=4, unique=True
    )
    bears = draw(st.lists(names.filter(lambda name: name.isascii()), max_size=3, unique=True))
    indexes = tuple(
        Index(id=number, name=name, columns=tuple(draw(columns)), unique=draw(booleans))
        for number, name in enumerate(bears, 1)
    )
    constraints = tuple(
        Constraint(
            id=number,
            name=name,
            kind=ConstraintKind.CHECK,
            columns=(info.columns[0].id,),
            expression=f"c{info.columns[0].id} is not null",
            holds=draw(booleans),
        )
        for number, name in enumerate(bears, 1)
    )
    return info.model_copy(update={"indexes": indexes, "constraints": constraints})


@settings(max_examples=150)
@given(tables())
@pytest.mark.slow
def test_given_any_table_when_shown_as_sql_then_that_makes_an_equal_one(info: TableInfo) -> None:
    route = table_route(1024, ((NODE,),) * info.partition.regions)
    made_before = Catalog().apply(first_update(), 1)
    catalog = made_before.apply(update(2, TableCreated(info=info, route=route)), 2)

    shown = listing(catalog, SESSION, sql.ShowCreateTable(sql.QualifiedTable("t")))

    ((name, text),) = shown.rows
    first, *others = (each.command for each in statements(str(text), lambda table, column: None))
    assert name == "main.public.t"
    assert isinstance(first, sql.CreateTableStatement)
    again = made(first.spec.model_copy(update={"if_not_exists": True}))
    assert alike(again, info, if_not_exists=True) is info
    made_indexes = [each.spec for each in others if isinstance(each, sql.CreateIndexStatement)]
    assert [(spec.name, spec.unique) for spec in made_indexes] == [
        (index.name, index.unique) for index in info.indexes
    ]
    checks = [each for each in others if isinstance(each, sql.AlterTableStatement)]
    assert len(checks) == len(info.constraints)
