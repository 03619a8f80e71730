"""OpenAPI documentation that routes share: the problems of each route, and its headers."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from metasrv.api.documents.openapi_fixups import PROBLEM
from metasrv_base.wire.api.plans import PlanBody
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.problem.problems import KINDS, MEDIA_TYPE

Responses = dict[int | str, dict[str, Any]]

EVERYWHERE = (
    "malformed-request",
    "bad-path",
    "headers-too-large",
    "request-timeout",
    "not-found",
    "method-not-allowed",
    "internal",
)
QUERY = ("invalid-request",)
BODY = (
    "malformed-json",
    "body-too-large",
    "unsupported-media-type",
    "request-timeout",
    "invalid-request",
)
READ = ("stale", "history-expired", "not-ready", "no-leader", *QUERY)
PAGE = ("bad-page-token", "page-token-expired", *READ)
OF_LEADER = ("no-leader", "not-ready")  # reads of what only the leader has in memory
LEADER = (*OF_LEADER, "outcome-unknown")
CHANGE = (
    *LEADER,
    *QUERY,
    "bad-idempotency-key",
    "idempotency-key-reused",
    "version-mismatch",
    "object-locked",
    "being-dropped",
    "table-poisoned",
    "deadline-exceeded",
    "too-many-procedures",
    "storage-full",
    "action-not-allowed",
)
OF_TABLE = ("invalid-identifier", "table-not-found")
OF_COMMANDS = (
    *BODY,
    *OF_TABLE,
    "reserved-name",
    "unsupported",
    "not-in-batch",
    "ddl-too-large",
    "already-exists",
    "schema-conflict",
    "not-empty",
    "invalid-schema-change",
    "node-not-eligible",
)
"""Refusals of several commands in one request."""

_HEADERS: dict[str, dict[str, Any]] = {
    "Catalog-Version": {
        "description": "Version of the catalog it was answered from, or that the change made.",
        "schema": {"type": "integer"},
    },
    "Catalog-Stale": {
        "description": "`true`: this server has not heard from the store for longer than a lease.",
        "schema": {"type": "string"},
    },
    "ETag": {"schema": {"type": "string"}},
}
_OF_A_MISS: dict[str, dict[str, Any]] = {
    "Catalog-Version": _HEADERS["Catalog-Version"],
    "Catalog-Applied": {
        "description": "`false`: it did not exist, and nothing was changed (`if_exists`).",
        "schema": {"type": "string"},
    },
}
MISSED: Responses = {
    204: {"description": "It does not exist (`if_exists`).", "headers": _OF_A_MISS}
}
"""An answer of changes that else answer with their object."""


def problems(*codes: str) -> Responses:
    """The answers that are not successes, by status, each with its codes."""
    by_status: dict[int, list[str]] = {}
    for code in sorted({*codes, *EVERYWHERE}):
        by_status.setdefault(KINDS[code].status, []).append(code)
    return {status: _problem(problem_codes) for status, problem_codes in sorted(by_status.items())}


def _problem(codes: Iterable[str]) -> dict[str, Any]:
    described = "; ".join(f"`{code}`: {KINDS[code].title}" for code in codes)
    # Not as a `model`: of each the framework would make a type adapter, a thousand at every start.
    return {"content": {MEDIA_TYPE: {"schema": {"$ref": PROBLEM}}}, "description": described}


def read(*codes: str) -> Responses:
    """The responses of a read of the catalog."""
    return {**_found("As the catalog has it."), **problems(*READ, *codes)}


def page(*codes: str) -> Responses:
    return {**_found("One page."), **problems(*PAGE, *codes)}


def _found(described: str) -> Responses:
    return {
        200: {"description": described, "headers": _HEADERS},
        304: {"description": "The client has it already (If-None-Match)."},
    }


def change(status: int, model: type[BaseModel] | None, *codes: str) -> Responses:
    """The responses of a change: 202 with the procedure; its own status and body for a client that
    waited."""
    if status == 204:
        ended: Responses = {
            204: {"description": "Done; or it does not exist.", "headers": _OF_A_MISS},
            200: {"model": PlanBody, "description": "What it would do (`dry_run`)."},
        }
    else:
        body: Any = model if status != 200 or model is None else model | PlanBody
        ended = {status: {"model": body, "description": "Done.", "headers": _HEADERS}}
        if status == 201 and model is not None:
            ended[200] = {
                "model": model | PlanBody,
                "description": "It stands already (`if_not_exists`), or the plan (`dry_run`).",
            }
    accepted = {
        "model": ProcedureBody,
        "description": "Durably stored, and under way.",
        "headers": {
            "Location": {"schema": {"type": "string"}},
            "Retry-After": {"schema": {"type": "integer"}},
            "Preference-Applied": {"schema": {"type": "string"}},
            "Idempotency-Replayed": {"schema": {"type": "string"}},
        },
    }
    return {**ended, 202: accepted, **problems(*CHANGE, *codes)}
