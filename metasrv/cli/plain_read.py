"""A read over one plain connection, for what must answer at once: a TAB, and a list of names.

The SDK takes 0.1 s to import. It is asked after this when there is no answer: it tries every
server, waits, and says what is wrong. A read that was sent twice has done no harm.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

PATIENCE_S = 0.5
ANSWER_BYTES_MAX = 16 << 20
PAGE = 500
"""Items of one answer of a list, as the SDK asks for."""
Params = Mapping[str, str | int]


def listed(
    urls: str, path: str, items: str, params: Params, token: str | None
) -> list[dict[str, Any]] | None:
    """All items of a list, page by page. *urls*: with commas between. None: the first server gave
    no such answer, for whatever reason."""
    from http.client import HTTPException

    all_items: list[dict[str, Any]] = []
    page_token: object = ""
    try:
        while page_token is not None:
            more = {"page_token": str(page_token)} if page_token else {}
            page = document(urls, path, {"page_size": PAGE, **params, **more}, token)
            all_items += [dict(item) for item in page[items]]
            page_token = page.get("next_page_token")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, HTTPException):
        return None
    return all_items


def document(urls: str, path: str, params: Params, token: str | None) -> Any:
    """The JSON document at *path* of the first server of *urls*. Raises OSError, ValueError,
    HTTPException."""
    import http.client

    url = _split(urls.split(",")[0].strip())
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=PATIENCE_S)
    query = f"?{urlencode(params)}" if params else ""
    try:
        connection.connect()
        _must_lead_to_us(connection.sock.getpeername())
        headers = {"authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", path + query, headers=headers)
        answer = connection.getresponse()
        content = answer.read(ANSWER_BYTES_MAX + 1)
    finally:
        connection.close()
    if answer.status != http.client.OK or len(content) > ANSWER_BYTES_MAX:
        raise ValueError("no such answer")
    return json.loads(content)


def _split(text: str) -> Any:
    """The parts of a base URL. Raises ValueError for another scheme, and for a path."""
    url = urlsplit(text if "://" in text else f"http://{text}")
    if url.scheme not in ("http", "https") or url.path not in ("", "/"):
        raise ValueError(f"{text} is no base URL")
    return url


def _must_lead_to_us(peer: object) -> None:
    """Raises OSError where a token must not be shown."""
    from metasrv_base.wire.http.addresses import leads_to_us

    if not leads_to_us(peer):
        raise OSError("no program of ours is at that address")
