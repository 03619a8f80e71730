"""Names of the catalog that the prompt completes: read in the background, never waited for."""

from concurrent.futures import CancelledError
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from metasrv_base.errors import MetaError

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client

ROWS_MAX = 10_000
"""The most tables, columns and indexes that are known, of each."""


@dataclass(frozen=True, slots=True)
class TableNames:
    catalog: str
    schema: str
    table: str
    columns: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogNames:
    schemas: tuple[tuple[str, str], ...] = ()
    """Pairs of a catalog and a schema."""
    tables: tuple[TableNames, ...] = ()


class NameReader:
    """Reads the names in a thread of its own, whenever it is told to; what it read last is there
    at once."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._names = CatalogNames()
        self._is_due = Event()
        self._thread = Thread(target=self._run, name="metasrv-names", daemon=True)
        self._thread.start()

    @property
    def names(self) -> CatalogNames:
        """The names read last."""
        return self._names

    def refresh(self) -> None:
        """Has them read again; several requests that come while it reads are one."""
        self._is_due.set()

    def _run(self) -> None:
        while True:
            self._is_due.wait()
            self._is_due.clear()
            try:
                self._names = read_names(self._client)
            except MetaError:  # no service answers
                continue
            except (CancelledError, RuntimeError):  # the client is closed
                return


def read_names(client: "Client") -> CatalogNames:
    """Raises MetaError."""
    of_table = ["table_catalog", "table_schema", "table_name"]
    schemas = _rows(client, "schemata", ["catalog_name", "schema_name"])
    columns = _by_table(_rows(client, "columns", [*of_table, "column_name"]))
    indexes = _by_table(_rows(client, "indexes", [*of_table, "index_name"]))
    tables = [(row[0], row[1], row[2]) for row in _rows(client, "tables", of_table)]
    return CatalogNames(
        tuple((row[0], row[1]) for row in schemas),
        tuple(
            TableNames(*table, tuple(columns.get(table, ())), tuple(indexes.get(table, ())))
            for table in tables
        ),
    )


def _rows(client: "Client", view: str, columns: list[str]) -> list[tuple[str, ...]]:
    """The rows of a view, their values in the order of *columns*."""
    shown = client.show(view, columns=columns, limit=ROWS_MAX)
    indexes = [shown.columns.index(name) for name in columns]
    return [tuple(row[index] for index in indexes) for row in shown.rows]


def _by_table(rows: list[tuple[str, ...]]) -> dict[tuple[str, str, str], list[str]]:
    by_table: dict[tuple[str, str, str], list[str]] = {}
    for catalog, schema, table, name in rows:
        by_table.setdefault((catalog, schema, table), []).append(name)
    return by_table
