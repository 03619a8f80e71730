"""The document of the HTTP surface, made from the routes and checked in: CI fails on drift."""

import json
from collections.abc import Iterator
from typing import Any

from base.wire.problems import MEDIA_TYPE
from metasrv.api.routes import bare_app

PATH = "openapi/metasrv.v1.json"
_JSON = "application/json"
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def documents() -> dict[str, str]:
    """Path in this checkout -> text."""
    return {PATH: json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"}


def document() -> dict[str, Any]:
    """Without the framework's own errors, which no answer of ours has."""
    found: dict[str, Any] = bare_app().openapi()
    for operation in _operations(found):
        for status, response in operation["responses"].items():
            _as_problem(status, response)
    schemas = found["components"]["schemas"]
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    return found


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def _as_problem(status: str, response: dict[str, Any]) -> None:
    content = response.get("content")
    if content and int(status) >= 400 and _JSON in content:
        response["content"] = {MEDIA_TYPE: content[_JSON]}
