"""Completes the document of a frontend's HTTP surface, which is made from the routes.

Routes read their queries and bodies themselves; what they read is data, and is added here.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from dataplane.frontend.http.answers import MediaType
from dataplane.frontend.http.api import BY_ID, BY_NAME
from dataplane.frontend.http.sql import SQL
from dataplane.frontend.statements.parameters import (
    INDEX,
    KEY,
    LAG,
    NONE,
    OP,
    PAGE,
    PARAMETERS,
    REGION,
    SCAN,
)
from metasrv_base.wire.frontend.rows import (
    MIN_SCHEMA_VERSION,
    SCHEMA_VERSION,
    SENT_MS,
    KeysRequest,
    RowsRequest,
)
from metasrv_base.wire.http.client import ANSWER_WITHIN_MS
from metasrv_base.wire.language.row_sql import RowSqlRequest
from metasrv_base.wire.problem.problems import MEDIA_TYPE
from serving.openapi import share_answers

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same again is answered by what it did the first time, within two minutes of"
    " the first (`statement_window_ms` of the datanodes).",
    "schema": {"type": "string", "maxLength": 255},
}
_SENT_HEADER = {
    "name": SENT_MS,
    "in": "header",
    "required": False,
    "description": "When the client made the request, in milliseconds since 1970 by its own clock;"
    " the same in all copies. A copy that comes later than two minutes after it is refused with"
    " `statement-too-old`, and never applied; one from a clock that is ahead, with `clock-skew`."
    " Default: the arrival of this copy; a copy that is sent two minutes later is applied again.",
    "schema": {"type": "integer", "minimum": 1},
}
_WITHIN_HEADER = {
    "name": ANSWER_WITHIN_MS,
    "in": "header",
    "required": False,
    "description": "How long the client waits for the answer, in milliseconds from the arrival of"
    " the request. Until then, what refuses the rows for now is asked again; then the last refusal"
    " is the answer. Default: the time of a transaction, 10 s.",
    "schema": {"type": "integer", "minimum": 1},
}
_MIN_HEADER = {
    "name": MIN_SCHEMA_VERSION,
    "in": "header",
    "required": False,
    "description": "The answer is computed with this schema version of the table, or a newer one.",
    "schema": {"type": "integer", "minimum": 1},
}

_WRITE_HEADERS = (_KEY_HEADER, _SENT_HEADER, _WITHIN_HEADER)


@dataclass(frozen=True, slots=True)
class RequestParts:
    """The parts of a request that one route reads."""

    query: frozenset[str] = NONE
    body: type[BaseModel] | None = None
    takes_arrow: bool = False
    gives_rows: bool = False
    """Whether it answers rows as JSON, NDJSON or Arrow, by `Accept`."""


ROUTES: Mapping[tuple[str, str], RequestParts] = {
    ("post", "/rows"): RequestParts(OP, RowsRequest, takes_arrow=True),
    ("get", "/rows"): RequestParts(KEY | INDEX | PAGE, gives_rows=True),
    ("post", "/rows/get"): RequestParts(LAG, KeysRequest, gives_rows=True),
    ("get", "/scan"): RequestParts(SCAN | PAGE, gives_rows=True),
    ("get", "/checksum"): RequestParts(REGION),
}
"""The parts by method, and the path behind that of the table."""


def completed(made: dict[str, Any]) -> dict[str, Any]:
    """*made*, the framework's document, with what the routes read by themselves."""
    document = deepcopy(made)
    for base in (BY_NAME, BY_ID):
        for (method, path), parts in ROUTES.items():
            operation = document["paths"][base + path][method]
            operation["parameters"] = [*_path(base), *_query(parts), *_headers(parts)]
            if parts.body is not None:
                operation["requestBody"] = _body(parts, parts.body)
                document["components"]["schemas"] |= _schemas(parts.body)
            if parts.gives_rows:
                _give_rows(operation["responses"]["200"])
    operation = document["paths"][SQL]["post"]
    operation["parameters"] = list(_WRITE_HEADERS)
    operation["requestBody"] = _body(RequestParts(), RowSqlRequest)
    document["components"]["schemas"] |= _schemas(RowSqlRequest)
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation["responses"]["default"]["content"]
            content[MEDIA_TYPE] = content.pop("application/json")
    return share_answers(document)


def _path(base: str) -> Iterator[dict[str, Any]]:
    names = [part.strip("{}") for part in base.split("/") if part.startswith("{")]
    for name in names:
        type = "integer" if name == "table_id" else "string"
        yield {"name": name, "in": "path", "required": True, "schema": {"type": type}}


def _query(parts: RequestParts) -> Iterator[dict[str, Any]]:
    for name in sorted(parts.query):
        parameter = PARAMETERS[name]
        schema: dict[str, Any] = {"type": parameter.type}
        if parameter.repeated:
            schema = {"type": "array", "items": schema}
        yield {
            "name": name,
            "in": "query",
            "required": False,
            "description": parameter.about,
            "schema": schema,
        }


def _headers(parts: RequestParts) -> list[dict[str, Any]]:
    return [*_WRITE_HEADERS, _MIN_HEADER] if parts.takes_arrow else [_MIN_HEADER]


def _body(parts: RequestParts, model: type[BaseModel]) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content: dict[str, Any] = {MediaType.JSON.value: {"schema": schema}}
    if parts.takes_arrow:
        content[MediaType.ARROW.value] = _BINARY
    return {"required": True, "content": content}


def _schemas(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), model.__name__: schema}


def _give_rows(response: dict[str, Any]) -> None:
    response["content"] |= {
        MediaType.LINES.value: {"schema": {"type": "string"}},
        MediaType.ARROW.value: _BINARY,
    }
    response["headers"] = {SCHEMA_VERSION: {"schema": {"type": "integer"}}}
