"""/v1/procedures: every change under way, and those that are over."""

from typing import Annotated, get_args

from fastapi import APIRouter, Header, Query, Request, Response

from metasrv.api.documents.documented import OF_LEADER, problems
from metasrv.api.http.answers import answer, etag_matches
from metasrv.api.http.query import ProceduresQuery
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import Server, Wait
from metasrv.api.http.respond import RETRY_AFTER_S, preference_applied
from metasrv.service.procedures import procedures
from metasrv.service.procedures.procedure_list import Filter, ListWanted, listed
from metasrv.service.procedures.procedures import Shown
from metasrv_base.errors import Refused
from metasrv_base.schema.instants import parse_instant
from metasrv_base.wire.api.procedures import ProcedureBody, ProcedureList, ProcedureState

STATES = frozenset(get_args(ProcedureState))

router = APIRouter(prefix="/v1/procedures", tags=["procedures"])


@router.get(
    "",
    response_model=ProcedureList,
    responses=problems(*OF_LEADER, "bad-page-token", "invalid-request"),
)
async def list_procedures(
    request: Request, state: Server, query: Annotated[ProceduresQuery, Query()]
) -> Response:
    """Procedures, newest first, those that are over among them."""
    only = Filter(
        states(query.state),
        words(query.kind),
        query.resource,
        _instant(query.since, "since"),
        _instant(query.until, "until"),
        query.stalled,
        query.parent,
    )
    list_request = ListWanted(request.url.path, query.page_size, query.page_token, only)
    return answer(await listed(state, list_request))


def _instant(text: str | None, pointer: str) -> int | None:
    """Parses a time to ms since the Unix epoch; an earlier one is 0, None is None. Raises
    Refused("invalid-request")."""
    return None if text is None else max(parse_instant(text, "ms", pointer), 0)


def states(text: str | None) -> frozenset[str]:
    """Raises Refused for what is no state, which would otherwise look like an empty list."""
    named_states = words(text)
    if not named_states <= STATES:
        wrong = ", ".join(sorted(named_states - STATES))
        raise Refused("invalid-request", expected="states, as running,waiting", found=wrong)
    return named_states


def words(text: str | None) -> frozenset[str]:
    return frozenset(text.split(",")) if text else frozenset()


@router.get(
    "/{procedure}",
    response_model=ProcedureBody,
    responses={
        304: {"description": "It has not moved (If-None-Match)."},
        **problems(*OF_LEADER, "procedure-not-found", "invalid-request"),
    },
)
async def get_procedure(
    state: Server,
    procedure: str,
    query: Annotated[NoQuery, Query()],
    wait: Wait,
    if_none_match: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Response:
    """One procedure, as it is. With `Prefer: wait=N`: once it has ended, or after N seconds as it
    is by then; with `If-None-Match` too: as soon as it has moved."""
    tag = if_none_match.strip().removeprefix("W/") if if_none_match else None
    shown = await procedures.get(state, procedure, unlike=tag, wait_ms=wait or 0)
    if etag_matches(if_none_match, shown.etag):
        return Response(status_code=304, headers=_headers(shown, wait))
    return answer(shown.body, 200, _headers(shown, wait))


def _headers(shown: Shown, wait: int | None) -> dict[str, str]:
    headers = {"ETag": shown.etag, **preference_applied(wait)}
    if not shown.body.done:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    return headers
