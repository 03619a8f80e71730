"""The text of a request: read once, however large it is, with its tables looked up in between."""

import pytest

from dataplane.frontend.sql import read_statements as reading
from dataplane.frontend.sql.read_statements import SHORT_CHARS, read_statements
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.rows.row_commands import InsertRows
from metasrv_base.sql.split import StatementText
from metasrv_base.wire.language.row_sql import RowSqlRequest
from tests.dataplane.frontend.bench import running
from tests.dataplane.frontend.sql.sql_requests import refused
from tests.dataplane.frontend.tables import feed_table


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of the statements whose tokens were cut."""
    starts: list[int] = []

    class Counted(Reader):
        def __init__(self, statement: StatementText) -> None:
            starts.append(statement.start)
            super().__init__(statement)

    monkeypatch.setattr(reading, "Reader", Counted)
    return starts


@pytest.mark.parametrize("count", [2, SHORT_CHARS])
async def test_given_a_text_then_each_statement_is_read_once_by_the_types_of_its_table(
    count: int, cut: list[int]
) -> None:
    insert = f"insert into t (id, b) values {', '.join(f'({n}, null)' for n in range(count))}"
    text = f"{insert}; select id from main.public.t where b = 'x'; explain {insert}"
    async with running(feed_table()) as bench:
        read = await read_statements(bench.service.statements, RowSqlRequest(text=text))

    assert cut == [0, text.index("select"), text.index("explain")]
    assert [statement.text.start for statement in read] == cut
    assert isinstance(read[0].command, InsertRows)
    assert read[0].command.rows[-1] == {"id": count - 1, "b": None}
    assert read[0].places["/table"].start == text.index("t (id")
    assert f"/rows/{count - 1}/b" in read[0].places


async def test_given_faults_of_several_statements_then_the_first_is_told() -> None:
    async with running(feed_table()) as bench:
        unread = await refused(bench, "select from t; select * from u")
        open_text = await refused(bench, "select c from t; insert into t values ('x")

    assert (unread["code"], unread["column"]) == ("invalid-sql", 8)
    assert (open_text["code"], open_text["column"]) == ("invalid-sql", 8)
