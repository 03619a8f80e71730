"""The demands of PEP 249 on the module and on connections, with nothing to connect to."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest

from metasrv import dbapi
from metasrv.dbapi.connection import Connection
from metasrv.dbapi.session import ConnectionSession, ConnectionTarget
from metasrv.sdk.portal import Portal
from tests.dataplane.frontend.tables import feed_table
from tests.metasrv.dbapi.hosted import hosted

NOBODY = "http://127.0.0.1:1"
LIMIT_S = 120
PEP_249 = {
    "apilevel",
    "threadsafety",
    "paramstyle",
    "connect",
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
    "Date",
    "Time",
    "Timestamp",
    "DateFromTicks",
    "TimeFromTicks",
    "TimestampFromTicks",
    "Binary",
    "STRING",
    "BINARY",
    "NUMBER",
    "DATETIME",
    "ROWID",
}


def test_given_the_module_then_it_has_the_names_of_pep_249() -> None:
    assert set(dbapi.__all__) >= PEP_249
    assert all(hasattr(dbapi, name) for name in dbapi.__all__)
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")


def test_given_the_constructors_then_they_make_what_can_be_bound() -> None:
    assert dbapi.Timestamp(2013, 1, 31, 23, 59).isoformat() == "2013-01-31T23:59:00+00:00"
    assert dbapi.TimestampFromTicks(0).isoformat() == "1970-01-01T00:00:00+00:00"
    assert dbapi.DateFromTicks(86_400) == dbapi.Date(1970, 1, 2)
    assert dbapi.TimeFromTicks(61) == dbapi.Time(0, 1, 1)
    assert dbapi.Binary(b"x") == b"x"


@pytest.mark.parametrize(
    ("code", "group"),
    [
        ("string", dbapi.STRING),
        ("binary", dbapi.BINARY),
        ("decimal(10,2)", dbapi.NUMBER),
        ("int8", dbapi.NUMBER),
        ("timestamp(us)", dbapi.DATETIME),
        ("date", dbapi.DATETIME),
    ],
)
def test_given_a_type_code_then_it_equals_one_type_object(code: str, group: object) -> None:
    groups = (dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID)

    assert [each for each in groups if each == code] == [group]
    assert None not in groups


def test_given_a_closed_connection_or_cursor_then_nothing_can_be_asked_of_it() -> None:
    connection = dbapi.connect(NOBODY, patience_ms=1)
    cursor, other = connection.cursor(), connection.cursor()
    other.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor"):
        other.execute("select * from t")
    connection.close()
    connection.close()

    for asked in (connection.cursor, connection.commit, connection.rollback):
        with pytest.raises(dbapi.InterfaceError, match="connection"):
            asked()
    for call in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute("select * from t")):
        with pytest.raises(dbapi.InterfaceError, match="connection"):
            call()


def test_given_no_url_then_it_is_a_wrong_call() -> None:
    with pytest.raises(dbapi.DataError, match="http://"):
        dbapi.connect("localhost")


def test_given_a_service_that_is_not_there_then_nothing_was_done() -> None:
    with dbapi.connect(NOBODY, patience_ms=1, wait_s=0.1) as connection:
        for text in ("select * from t", "drop table t"):
            with pytest.raises(dbapi.OperationalError):
                connection.cursor().execute(text)


class _Silent(httpx.AsyncBaseTransport):
    """A service that takes a request and never answers."""

    def __init__(self) -> None:
        self.asked = Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("it never answers")


def test_given_a_statement_under_way_when_closed_then_its_outcome_is_unknown() -> None:
    service, target = _Silent(), ConnectionTarget([NOBODY])
    connection = Connection(ConnectionSession(target, service), Portal())
    cursor = connection.cursor()

    with ThreadPoolExecutor() as threads:
        dropped = threads.submit(cursor.execute, "drop table t")
        assert service.asked.wait(LIMIT_S)
        connection.close()
        with pytest.raises(dbapi.OutcomeUnknownError, match="closed"):
            dropped.result(LIMIT_S)


def test_given_a_rollback_then_it_says_that_there_is_none() -> None:
    with hosted(feed_table()) as host:
        connection = host.connection
        connection.cursor().execute("insert into t (id) values (?)", (1,))
        connection.commit()
        with pytest.raises(dbapi.NotSupportedError):
            connection.rollback()

        rows = connection.cursor().execute("select id from t").fetchall()

    assert (rows, connection.autocommit) == ([(1,)], True)
