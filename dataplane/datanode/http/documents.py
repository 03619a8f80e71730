"""The node protocol as documents, made from the app and the wire models; checked in and diffed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from dataplane.datanode.http.app import bare_app
from dataplane.datanode.http.protocol import CALLS, ProtocolCall
from metasrv_base.wire.node.copy_changes import CopyChangesAnswer, CopyChangesRequest
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.silences import SilenceAnswer, SilenceReport
from metasrv_base.wire.problem.problems import KINDS
from serving.openapi import document_text

OPENAPI = "openapi/node.v1.json"
PAGE = "docs/node-protocol.md"
ANY_JSON = "JsonValue"

HEAD = """# The node protocol

The calls between metasrv and a datanode, between clients and a datanode, and between datanodes.
Generated from the code, as is the OpenAPI document
[`openapi/node.v1.json`](../openapi/node.v1.json).

A store that answers these calls as described here, and registers and sends heartbeats as described
in `metasrv_base/wire/node/nodes.py`, can take the datanode's place. `NODE_URL=... pytest
tests/node_conformance` tests a store for this.

- Region ids are decimal strings, keys hexadecimal, roots absolute paths. Unknown fields are errors.
- Every refusal is problem+json with one of the codes listed; [problems](problems/README.md) has a
  page for each. 503: not attempted, send it again. 504: perhaps done; send the same bytes again.
- A node answers 503 `not-ready` for a region whose lease has ended, and 404 `not-found` for one
  that is not open there: in both cases the route names the leader.
"""

REPORTS = """
## What a node sends

At every start a node sends `POST /internal/v1/nodes/{node_id}/register` with a new incarnation,
until it is answered. It stores the cluster id of the first answer on disk, and ends with exit code
78 if a later answer has another one. Then it sends `PUT /internal/v1/nodes/{node_id}/heartbeat`
every `heartbeat_ms`, with a rising sequence. It takes the time before it sends a heartbeat:
`lease_ms` of the answer, less 0.1 % for drift, counts from there for every (region, epoch) granted.
An answer of a term below the highest seen, or to another sequence than the last, grants nothing.
421 names the leader; 404 makes the node register again; `stale-incarnation` twice in succession
ends it with exit code 78. Instructions are executed like orders, with sender null.

If an answer has `is_kept`, the next heartbeat may leave out what is as in the one answered: it has
the sequence of that one in `changes_since`, the regions that are new or differ in `regions`, those
that are gone in `gone`, and the `digest` of all. `granted_by` is the newest answer with `is_kept`
that named its grants; where an answer `renews` it, each of these is granted again. If an answer has
`wants_whole`, the node sends a heartbeat with all of its regions at once. All of this is optional:
a node that always sends all regions is answered in full.

A node that follows a leader which has asked for no promise for 1 s reports it once a second, by
`POST /internal/v1/nodes/{node_id}/silent-leaders`, with all regions that it follows there. The
answer changes nothing at the node: the next leader is named by an order.

The node that leads a region with copies asks by `POST /internal/v1/nodes/{node_id}/copies` that a
learner joins the set, or that a copy leaves it. It asks again, with the same epoch and version,
until the result is a version or a permanent error.
"""
REPORT_MODELS: tuple[type[BaseModel], ...] = (
    RegisterRequest,
    RegisterAnswer,
    HeartbeatRequest,
    HeartbeatAnswer,
    CopyChangesRequest,
    CopyChangesAnswer,
    SilenceReport,
    SilenceAnswer,
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
        explained |= {model.__name__ for model in _models(call)}
    return "\n".join([HEAD, *calls, *_reports(), *_rest(explained)]) + "\n"


def _section(name: str, call: ProtocolCall, what: str) -> Iterator[str]:
    yield f"\n## {name}\n\n{what}\n"
    yield f"- **Repeats.** {call.repeats}"
    yield f"- **Fence.** {call.fence}"
    yield f"- **Answers** `{call.gives.__name__}`." if call.gives else "- **Answers** no JSON."
    yield f"- **Errors.** {', '.join(_errors(call.errors))}."
    for model in dict.fromkeys(_models(call)):
        yield from _model(model.__name__, model.model_json_schema())


def _models(call: ProtocolCall) -> list[type[BaseModel]]:
    return [*call.takes, *([] if call.gives is None else [call.gives])]


def _reports() -> Iterator[str]:
    """The two calls that a node makes."""
    yield REPORTS
    for model in REPORT_MODELS:
        yield from _model(model.__name__, model.model_json_schema())


def _rest(explained: Collection[str]) -> Iterator[str]:
    """Models that stand in others only."""
    schemas: dict[str, Mapping[str, Any]] = {}
    roots = [model for call in CALLS.values() for model in _models(call)]
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
