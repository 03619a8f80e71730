"""Names that the shell completes, read from the service.

A TAB must be quick, so this asks over one plain connection and imports no client; any failure
completes nothing.
"""

import json
import os
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from metasrv.cli.playground_url import playground_url

PATIENCE_S = 0.5
NAMES_MAX = 100


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


def _beginning(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _names(path: str, items: str, field: str, params: dict[str, str | int]) -> list[str]:
    from http.client import HTTPException

    query = f"?{urlencode(params)}" if params else ""
    try:
        document = _asked(path + query)
        return [str(item[field]) for item in document[items]]
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return []


def _asked(path: str) -> Any:
    """The JSON document at *path* of the first server of METASRV_URL, or of the playground. Raises
    OSError, ValueError, HTTPException."""
    import http.client

    named = os.environ.get("METASRV_URL") or playground_url(os.environ) or ""
    text = named.split(",")[0].strip()
    url = urlsplit(text if "://" in text else f"http://{text}")
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=PATIENCE_S)
    token = os.environ.get("METASRV_TOKEN")
    try:
        connection.request(
            "GET", path, headers={"authorization": f"Bearer {token}"} if token else {}
        )
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
