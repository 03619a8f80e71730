"""Names that the shell completes, read from the service that the line or the environment names.

A TAB must be quick, so this asks over one plain connection and imports no client; any failure
completes nothing.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import typer

from metasrv.cli.contexts.contexts import VARIABLE, read_contexts
from metasrv.cli.environment import service_address
from metasrv.cli.plain_read import Params, document

NAMES_MAX = 100
VIEWS = "/v1/information-schema"
CATALOGS = "/v1/catalogs"
WITHIN = ("main", "public")
"""The catalog and the schema of a name that has none."""
TYPE_WORDS = (
    *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "string", "binary"),
    *("date", "decimal(10,2)", "timestamp(us)"),
)
"""Types of columns, with the usual precision of those that have one."""
OBJECTS = ("table", "name", "view")
"""Parameters of commands, in one of which a line names its object."""
Completing = Callable[[typer.Context, str], list[str]]
"""Returns the words that the beginning of a word may become in the line so far."""


def table_names(context: typer.Context, incomplete: str) -> list[str]:
    """Tables that begin so, spelled as far as the user has: `t`, `public.t` or `main.public.t`."""
    return [name for name, _ in _tables(context, incomplete, {})]


def dropped_table_names(context: typer.Context, incomplete: str) -> list[str]:
    """Dropped tables that begin so, spelled as `table_names` spells them."""
    tables = _tables(context, incomplete, {"include_dropped": "true"})
    return list(dict.fromkeys(name for name, table in tables if table["dropped_at"] is not None))


def catalog_names(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning(_names(context, CATALOGS, "catalogs"), incomplete)


def schema_names(context: typer.Context, incomplete: str) -> list[str]:
    """Schemas that begin so: `public`, or `main.public`."""
    return _within_catalog(context, incomplete, "schemas")


def tablespace_names(context: typer.Context, incomplete: str) -> list[str]:
    """Tablespaces that begin so: `orders`, or `main.orders`."""
    return _within_catalog(context, incomplete, "tablespaces")


def placement_names(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning(_names(context, "/v1/placements", "placements"), incomplete)


def index_names(context: typer.Context, incomplete: str) -> list[str]:
    """Indexes of the table that the line names."""
    return _beginning(_parts_of_table(context, "indexes"), incomplete)


def column_names(context: typer.Context, incomplete: str) -> list[str]:
    """The last of some columns with commas between, of the table that the line names."""
    before, comma, prefix = incomplete.rpartition(",")
    columns = _parts_of_table(context, "columns")
    return [f"{before}{comma}{name}" for name in _beginning(columns, prefix)]


def typed_columns(context: typer.Context, incomplete: str) -> list[str]:
    """`COLUMN:TYPE` with a column of the table that the line names, then its type."""
    column, colon, _ = incomplete.partition(":")
    if colon:
        return new_columns(context, incomplete)
    names = _beginning(_parts_of_table(context, "columns"), column)
    types = TYPE_WORDS if len(names) == 1 else ("",)
    return [f"{name}:{type}" for name in names for type in types]


def new_columns(context: typer.Context, incomplete: str) -> list[str]:
    """The type of the last `NAME:TYPE` of some with commas between; a new name is the user's."""
    name, colon, prefix = incomplete.rpartition(":")
    return [f"{name}:{type}" for type in _beginning(TYPE_WORDS, prefix)] if colon else []


def renamed_columns(context: typer.Context, incomplete: str) -> list[str]:
    """`OLD:` of `OLD:NEW`, with a column of the table that the line names."""
    columns = _parts_of_table(context, "columns")
    return [] if ":" in incomplete else [f"{name}:" for name in _beginning(columns, incomplete)]


def column_values(context: typer.Context, incomplete: str) -> list[str]:
    """`COLUMN=` of `COLUMN=VALUE`, with a column of the table that the line names."""
    columns = _parts_of_table(context, "columns")
    return [] if "=" in incomplete else [f"{name}=" for name in _beginning(columns, incomplete)]


def region_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of the first regions that begin so."""
    size = {"page_size": NAMES_MAX}
    return _beginning(_names(context, "/v1/regions", "regions", "region_id", size), incomplete)


def constraint_names(context: typer.Context, incomplete: str) -> list[str]:
    """Constraints of the table that the line names."""
    return _beginning(_parts_of_table(context, "constraints"), incomplete)


def node_ids(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning(_names(context, "/v1/nodes", "nodes", "id"), incomplete)


def setting_names(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning(_names(context, "/v1/settings", "settings"), incomplete)


def procedure_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of the newest procedures."""
    size = {"page_size": NAMES_MAX}
    return _beginning(_names(context, "/v1/procedures", "procedures", "id", size), incomplete)


def view_names(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning(_names(context, VIEWS, "views"), incomplete)


def view_columns(context: typer.Context, incomplete: str) -> list[str]:
    """The last of some columns with commas between, of the view that the line names."""
    before, comma, prefix = incomplete.rpartition(",")
    columns = _columns_of_view(context)
    return [f"{before}{comma}{name}" for name in _beginning(columns, prefix)]


def view_conditions(context: typer.Context, incomplete: str) -> list[str]:
    """The last word of a filter, if it may be a column of the view that the line names."""
    before, blank, prefix = incomplete.rpartition(" ")
    columns = _columns_of_view(context)
    return [f"{before}{blank}{name}" for name in _beginning(columns, prefix)]


def context_names(context: typer.Context, incomplete: str) -> list[str]:
    """Contexts of the user, from their file."""
    try:
        return _beginning(read_contexts(os.environ).by_name, incomplete)
    except typer.BadParameter:
        return []


def words_of(words: Iterable[str]) -> Completing:
    """Completes the last of some of *words* with commas between."""
    choices = sorted(words)

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        before, comma, prefix = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in _beginning(choices, prefix)]

    return complete


def _tables(context: typer.Context, incomplete: str, params: Params) -> list[tuple[str, Any]]:
    """Tables with their names as the user spells them."""
    *within, prefix = incomplete.split(".")
    catalog, schema = [*WITHIN[: 2 - len(within)], *within][:2]
    path = f"{CATALOGS}/{quote(catalog)}/schemas/{quote(schema)}/tables"
    sizes: Params = {"prefix": prefix, "page_size": NAMES_MAX}
    tables = _items(context, path, "tables", {**sizes, **params})
    return [
        (".".join([*within, table["name"]]), table)
        for table in tables
        if table["name"].startswith(prefix)
    ]


def _within_catalog(context: typer.Context, incomplete: str, kind: str) -> list[str]:
    catalog, dot, prefix = incomplete.rpartition(".")
    names = _names(context, f"{CATALOGS}/{quote(catalog or WITHIN[0])}/{kind}", kind)
    return [f"{catalog}{dot}{name}" for name in _beginning(names, prefix)]


def _parts_of_table(context: typer.Context, kind: str) -> list[str]:
    """Names of the columns, indexes or constraints of the table that the line names."""
    path = _object_of(context).split(".")
    if not all(path) or len(path) > len((*WITHIN, "table")):
        return []
    catalog, schema, table = map(quote, [*WITHIN[: 3 - len(path)], *path])
    return _names(context, f"{CATALOGS}/{catalog}/schemas/{schema}/tables/{table}", kind)


def _object_of(context: typer.Context) -> str:
    """The table or view that the line names, or nothing. While the value of an option is completed,
    the parser has given up at that option, and arguments are words without a parameter."""
    named = [context.params[param] for param in OBJECTS if context.params.get(param)]
    return str([*named, *context.args, ""][0])


def _named_context(context: typer.Context) -> str | None:
    """The value of `--context`, which stands before the command; it is in effect in no variable
    yet."""
    outer: typer.Context | None = context
    while outer is not None:
        name = outer.params.get("context")
        if name:
            return str(name)
        outer = getattr(outer, "parent", None)
    return None


def _url(context: typer.Context) -> str | None:
    """The URL of the line, else that of METASRV_URL unless the line names a context."""
    named = context.params.get("metasrv")
    if named or _named_context(context):
        return None if named is None else str(named)
    return os.environ.get("METASRV_URL")


def _environment(context: typer.Context) -> Mapping[str, str]:
    name = _named_context(context)
    return os.environ if name is None else {**os.environ, VARIABLE: name}


def _columns_of_view(context: typer.Context) -> list[str]:
    view = quote(_object_of(context), safe="")
    return [str(name) for name in _items(context, f"{VIEWS}/{view}", "columns", {"page_size": 1})]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _names(
    context: typer.Context, path: str, items: str, field: str = "name", params: Params | None = None
) -> list[str]:
    """Returns the *field* of each item of a list."""
    return [str(item[field]) for item in _items(context, path, items, params or {})]


def _items(context: typer.Context, path: str, items: str, params: Params) -> Sequence[Any]:
    """The list *items* of the document at *path*; empty where there is none."""
    from http.client import HTTPException

    try:
        asked = service_address(_environment(context), _url(context))
        if asked is None:
            return []
        listed = document(asked.url, path, params, asked.token)[items]
    except (OSError, ValueError, KeyError, TypeError, HTTPException, typer.BadParameter):
        return []
    return listed if isinstance(listed, list) else []
