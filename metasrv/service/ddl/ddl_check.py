"""check_table, judged and planned. Pure."""

from functools import partial

from metasrv.service.ddl.ddl_tables import table_asked_for, wants_table
from metasrv.service.requests.asking import Asked
from metasrv.service.requests.wishes import Change, Facts, TableName, Wish
from procedures.kinds.tables.check_table import CHECK_TABLE, CheckTable


def check_table(asked: Asked, name: TableName) -> Wish:
    return Wish(asked, partial(wants_table, name), partial(plan_check_table, asked, name))


def plan_check_table(asked: Asked, name: TableName, facts: Facts) -> Change:
    table_id = table_asked_for(asked, name, facts).info.table_id
    state = CheckTable(
        catalog=name.catalog, schema_name=name.schema, name=name.table, table_id=table_id
    )
    return Change(CHECK_TABLE, state, table_id)
