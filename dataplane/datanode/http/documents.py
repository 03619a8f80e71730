"""The node protocol as documents, made from the app and the wire models; checked in and diffed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from dataplane.datanode.http.app import bare_app
from dataplane.datanode.http.protocol import CALLS, ProtocolCall
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.problem.problems import KINDS
from serving.openapi import document_text

OPENAPI = "openapi/node.v1.json"
PAGE = "docs/node-protocol.md"
ANY_JSON = "JsonValue"

HEAD = """# The node protocol

Between metasrv and a datanode, and between clients and a datanode. Generated from the code; the
same as an OpenAPI document: [`openapi/node.v1.json`](../openapi/node.v1.json).

A store that answers these calls as written here, and registers and beats as
`metasrv_base/wire/node/nodes.py` says, can take the datanode's place: `NODE_URL=... pytest
tests/node_conformance` tells.

- Region ids are decimal strings, keys hexadecimal, roots absolute paths. Unknown fields are errors.
- Every refusal is problem+json with one of the codes listed; [problems](problems/README.md) has a
  page for each. 503: not attempted, send it again. 504: perhaps done; send the same bytes again.
- A node answers 503 `not-ready` for a region whose lease has ended, and 404 `not-found` for one
  that is not open here: in both cases the route tells who leads.
"""

REPORTS = """
## What a node sends

At every start `POST /internal/v1/nodes/{node_id}/register` with a new incarnation, until it is
answered; the cluster id of the first answer is kept on disk, and another one ends the process with
exit code 78. Then `PUT /internal/v1/nodes/{node_id}/heartbeat`, every `heartbeat_ms`, with a rising
sequence. The time a heartbeat was sent is taken before it goes out: `lease_ms` of the answer, less
0.1 % for drift, counts from there for every (region, epoch) granted. An answer of a term below the
highest seen, or to another sequence than the last, grants nothing. 421 names the leader; 404 makes
the node register again; `stale-incarnation` twice running ends it with exit code 78. Instructions
are executed like orders, with sender null.
"""
REPORT_MODELS: tuple[type[BaseModel], ...] = (
    RegisterRequest,
    RegisterAnswer,
    HeartbeatRequest,
    HeartbeatAnswer,
)


def documents() -> dict[str, str]:
    """Path in the checkout -> text."""
    return {OPENAPI: document_text(bare_app().openapi()), PAGE: page()}


def page() -> str:
    paths: Mapping[str, Any] = bare_app().openapi()["paths"]
    calls: list[str] = []
    explained: set[str] = set()
    for name, call in CALLS.items():
        method, path = name.split(" ")
        calls.extend(_section(name, call, paths[path][method.lower()]["description"]))
        explained |= {model.__name__ for model in (*call.takes, call.gives)}
    return "\n".join([HEAD, *calls, *_reports(), *_rest(explained)]) + "\n"


def _section(name: str, call: ProtocolCall, what: str) -> Iterator[str]:
    yield f"\n## {name}\n\n{what}\n"
    yield f"- **Repeats.** {call.repeats}"
    yield f"- **Fence.** {call.fence}"
    yield f"- **Answers** `{call.gives.__name__}`."
    yield f"- **Errors.** {', '.join(_errors(call.errors))}."
    for model in dict.fromkeys((*call.takes, call.gives)):
        yield from _model(model.__name__, model.model_json_schema())


def _reports() -> Iterator[str]:
    """The two calls that a node makes."""
    yield REPORTS
    for model in REPORT_MODELS:
        yield from _model(model.__name__, model.model_json_schema())


def _rest(explained: Collection[str]) -> Iterator[str]:
    """Models that stand in others only."""
    schemas: dict[str, Mapping[str, Any]] = {}
    roots = [model for call in CALLS.values() for model in (*call.takes, call.gives)]
    for model in (*roots, *REPORT_MODELS):
        parts = model.model_json_schema().get("$defs", {})
        schemas.update((name, part) for name, part in parts.items() if name != ANY_JSON)
    yield "\n## Parts of these"
    documented = {*explained, *(model.__name__ for model in REPORT_MODELS)}
    for name in sorted(schemas.keys() - documented):
        yield from _model(name, schemas[name])


def _errors(codes: Iterable[str]) -> Iterator[str]:
    for kind in sorted((KINDS[code] for code in codes), key=lambda kind: (kind.status, kind.code)):
        yield f"{kind.status} [`{kind.code}`](problems/{kind.code}.md)"


def _model(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n### {name}\n"
    if "description" in schema:
        yield _one_line(schema["description"]) + "\n"
    yield "| field | type | meaning |\n| --- | --- | --- |"
    required = schema.get("required", ())
    for field, shape in schema["properties"].items():
        optional = "" if field in required else ", optional"
        meaning = _one_line(shape.get("description", ""))
        yield f"| `{field}` | {_shape(shape)}{optional} | {meaning} |"


def _shape(shape: Mapping[str, Any]) -> str:
    """The type of a field, in words."""
    if "const" in shape:
        return f"`{shape['const']}`"
    if "$ref" in shape:
        name = str(shape["$ref"].rpartition("/")[2])
        return "any JSON" if name == ANY_JSON else name
    choices = shape.get("anyOf") or shape.get("oneOf")
    if choices:
        return " or ".join(map(_shape, choices))
    if shape.get("type") == "array":
        return f"list of {_shape(shape['items'])}"
    return str(shape.get("type", "any JSON"))


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
