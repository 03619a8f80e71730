"""The framework's document as ours: problems by their media type, no errors we never send."""

from collections.abc import Iterator
from typing import Any

from base.wire.problems import MEDIA_TYPE

_JSON = "application/json"
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def shaped(found: dict[str, Any]) -> dict[str, Any]:
    """*found*, changed in place; again: no change."""
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
