"""Names that the shell completes, read from the service.

A TAB must be quick, so this asks over one plain connection and imports no client; any failure
completes nothing.
"""

import os
from urllib.parse import quote

import typer

from metasrv.cli.plain_read import Params, document
from metasrv.cli.playground_url import playground_url

NAMES_MAX = 100
VIEWS = "/v1/information-schema"


def table_names(incomplete: str) -> list[str]:
    """Tables that begin so, spelled as far as the user has: `t`, `public.t` or `main.public.t`."""
    *within, prefix = incomplete.split(".")
    catalog, schema = [*["main", "public"][: 2 - len(within)], *within][:2]
    path = f"/v1/catalogs/{quote(catalog)}/schemas/{quote(schema)}/tables"
    names = _names(path, "tables", "name", {"prefix": prefix, "page_size": NAMES_MAX})
    return [".".join([*within, name]) for name in names if name.startswith(prefix)]


def node_ids(incomplete: str) -> list[str]:
    return _beginning(_names("/v1/nodes", "nodes", "id", {}), incomplete)


def setting_names(incomplete: str) -> list[str]:
    return _beginning(_names("/v1/settings", "settings", "name", {}), incomplete)


def procedure_ids(incomplete: str) -> list[str]:
    """Ids of the newest procedures."""
    ids = _names("/v1/procedures", "procedures", "id", {"page_size": NAMES_MAX})
    return _beginning(ids, incomplete)


def view_names(incomplete: str) -> list[str]:
    return _beginning(_names(VIEWS, "views", "name", {}), incomplete)


def view_columns(context: typer.Context, incomplete: str) -> list[str]:
    """The last of some columns with commas between, of the view that the line names."""
    before, comma, prefix = incomplete.rpartition(",")
    columns = _columns_of(str(context.params.get("view") or ""))
    return [f"{before}{comma}{name}" for name in _beginning(columns, prefix)]


def view_conditions(context: typer.Context, incomplete: str) -> list[str]:
    """The last word of a filter, if it may be a column of the view that the line names."""
    before, blank, prefix = incomplete.rpartition(" ")
    columns = _columns_of(str(context.params.get("view") or ""))
    return [f"{before}{blank}{name}" for name in _beginning(columns, prefix)]


def _columns_of(view: str) -> list[str]:
    return _names(f"{VIEWS}/{quote(view, safe='')}", "columns", None, {"page_size": 1})


def _beginning(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _names(path: str, items: str, field: str | None, params: Params) -> list[str]:
    """*field*: of each item; None: the items are names."""
    from http.client import HTTPException

    urls = os.environ.get("METASRV_URL") or playground_url(os.environ) or ""
    try:
        answer = document(urls, path, params, os.environ.get("METASRV_TOKEN"))
        return [str(item if field is None else item[field]) for item in answer[items]]
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return []
