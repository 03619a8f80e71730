"""Answers: bodies with the headers that go with them, and errors as problem+json, once each."""

from collections.abc import Mapping
from hashlib import blake2b

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from metasrv.service.catalog.reading import CatalogView
from metasrv_base.errors import Corrupt, MetaError, NotLeader, Unavailable
from metasrv_base.wire.api.placing.placements import TablespaceBody
from metasrv_base.wire.api.tables import CatalogBody, SchemaBody
from metasrv_base.wire.api.tenants import TenantUsage
from metasrv_base.wire.model import WireModel
from metasrv_base.wire.problem.fault_words import fault_of
from metasrv_base.wire.problem.problems import FieldError, field_errors
from serving.answers import answer_errors

VERSION_HEADER = "Catalog-Version"
"""The version of the catalog that a read was answered from, or that a change has made."""
APPLIED_HEADER = "Catalog-Applied"
"""`false`: the object did not exist, and `if_exists` was given."""
STALE_HEADER = "Catalog-Stale"
NODES_PATH = "/internal/"
JSON = "application/json"
ETAG_BYTES = 12  # two answers of one URL never share it by chance

log = structlog.get_logger()


def answer(
    body: WireModel, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(_json(body), status, headers, media_type=JSON)


def read_answer(
    request: Request, body: WireModel | bytes, view: CatalogView, etag: str | None = None
) -> Response:
    """A read of the catalog; 304 if the client has it already. *body*: bytes are JSON already.
    *etag*: None: that of its bytes."""
    text = body if isinstance(body, bytes) else _json(body)
    etag = _etag_of(text) if etag is None else etag
    headers = {
        VERSION_HEADER: str(view.catalog.version),
        "Cache-Control": "no-cache",
        "ETag": etag,
    }
    if view.stale:
        headers[STALE_HEADER] = "true"
    if etag_matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return Response(text, 200, headers, media_type=JSON)


def definition_etag(body: CatalogBody | SchemaBody | TablespaceBody) -> str:
    """The ETag of the definition; other changes of the catalog do not change it."""
    moving: dict[str, object] = {"catalog_version": 0}
    if isinstance(body, CatalogBody):
        moving["usage"] = TenantUsage()
    return _etag_of(_json(body.model_copy(update=moving)))


def _etag_of(text: bytes) -> str:
    return f'"b{blake2b(text, digest_size=ETAG_BYTES).hexdigest()}"'


def _json(body: WireModel) -> bytes:
    return body.model_dump_json(by_alias=True).encode()


def etag_matches(if_none_match: str | None, etag: str) -> bool:
    """If-None-Match, by weak comparison (RFC 9110, 13.1.2)."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags


# Errors -----------------------------------------------------------------------------------------


def install(app: FastAPI) -> None:
    answer_errors(app, faults=_faults, shown=_shown)


def visible_error(error: MetaError, path: str) -> MetaError:
    """Returns an error in the form that a client may see.

    Only nodes are told to ask the leader themselves; for everybody else servers forward.
    """
    if isinstance(error, NotLeader) and not path.startswith(NODES_PATH):
        return Unavailable("no-leader")
    if isinstance(error, Corrupt):
        return Corrupt("internal")  # its facts are for the log: they quote what is stored
    return error


def _shown(error: MetaError, path: str) -> MetaError:
    if isinstance(error, Corrupt):
        log.error("metadata_corrupt", error=str(error))
    return visible_error(error, path)


def _faults(error: RequestValidationError) -> tuple[FieldError, ...]:
    """Pointers are into the body; of a parameter, its name."""
    in_body = [detail for detail in error.errors() if detail["loc"][:1] == ("body",)]
    details = [{**detail, "loc": detail["loc"][1:]} for detail in in_body]
    others = [detail for detail in error.errors() if detail not in in_body]
    return (
        *field_errors(details, error.body),
        *(_parameter(detail["loc"], fault_of(detail)) for detail in others),
    )


def _parameter(loc: tuple[str | int, ...], message: str) -> FieldError:
    source, *name = loc
    detail = message.removeprefix("Value error, ")
    return FieldError(pointer="", detail=f"{source} parameter {'.'.join(map(str, name))}: {detail}")
