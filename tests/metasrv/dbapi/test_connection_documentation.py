"""The Python of docs/dbapi.md, run as it stands against a whole cluster, and a connection to it."""

import subprocess
import sys
from pathlib import Path

import pytest

from metasrv import dbapi
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.concurrency.run_in_thread import run_in_thread
from tests.metasrv.playground.documented_python import output_of, programs_of

pytestmark = pytest.mark.process

PLAIN = [
    "1998 written",
    "(datetime.datetime(2013, 1, 31, 23, 59, 59, tzinfo=datetime.timezone.utc), Decimal('12.50'),"
    ' "it\'s paid")',
    "[('paid', 'timestamp(us)'), ('amount', 'decimal(10,2)'), ('note', 'string')]",
    "already-exists 1",
    "[('payments', 3)]",
]
PANDAS = [
    "{'id': [1, 2, 3], 'paid': [Timestamp('2013-01-31 23:59:59+0000', tz='UTC'), NaT, NaT],",
    "'amount': [Decimal('12.50'), Decimal('2.00'), Decimal('3.00')]}",
    "[500, 500, 500, 499]",
]


def changed(url: str) -> None:
    """The catalog through a connection: its changes, its errors, and what is not there."""
    with dbapi.connect(url, schema="shop") as connection, connection.cursor() as cursor:
        cursor.execute(
            "BEGIN; CREATE SCHEMA shop; CREATE TABLE shop.t (id INT PRIMARY KEY); COMMIT"
        )
        assert (cursor.rowcount, cursor.description) == (-1, None)
        with pytest.raises(dbapi.IntegrityError, match="already"):
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        with pytest.raises(dbapi.ProgrammingError) as missing:
            cursor.execute("SELECT * FROM shop.absent")
        assert missing.value.code == "table-not-found"
        with pytest.raises(dbapi.ProgrammingError) as missing:
            cursor.execute("DROP TABLE absent")
        assert missing.value.code == "table-not-found"
        cursor.execute("EXPLAIN DROP TABLE t")
        assert cursor.description is not None
        assert cursor.description[0][:2] == ("plan", "string")
        assert "drop_table" in str(cursor.fetchall())
        cursor.execute("INSERT INTO t VALUES (?)", (1,))
        connection.commit()
        with pytest.raises(dbapi.NotSupportedError, match="no rollback"):
            connection.rollback()
        assert cursor.execute("SHOW TABLES").rowcount == 1


async def test_given_a_playground_when_the_documented_programs_run_then_they_say_what_they_should(
    tmp_path: Path,
) -> None:
    plain, pandas = programs_of("dbapi.md")

    async with Playground(PlaygroundOptions(tmp_path, frontends=1)) as playground:
        url = playground.metasrv_urls[0]
        said = await run_in_thread(False, output_of, plain, url)
        read = await run_in_thread(False, output_of, pandas, url)
        await run_in_thread(False, changed, url)

    for words in PLAIN:
        assert words in said
    for words in PANDAS:
        assert words in read


def test_given_the_package_when_imported_then_neither_arrow_nor_a_parser_is_loaded() -> None:
    heavy = ("sqlglot", "pyarrow", "pandas", "numpy", "fastapi", "typer")
    code = f"import sys, metasrv.dbapi; print(sorted(sys.modules.keys() & set({heavy})))"

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "[]"
