"""Controls of procedures, and what operators look at first: /v1/locks and /v1/poisons."""

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from metasrv.api.documents.documented import BODY, LEADER, OF_LEADER, Responses, problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import PAGE_SIZE, PAGE_SIZE_MAX, Flag, Whole
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import Principal, Server, Wait
from metasrv.service.procedures import procedures, steering
from metasrv.service.procedures.procedures import Shown
from metasrv.service.requests.request_context import ANONYMOUS
from metasrv_base.wire.api.control import LockList, PoisonBody, PoisonList, ThrottleRequest
from metasrv_base.wire.api.procedures import ProcedureBody
from procedures.engine.control import Command, Control

router = APIRouter(prefix="/v1", tags=["procedures"])

REASON_MAX = 500


class ControlQuery(NoQuery):
    """Parameters of every control: kept in the procedure's history, with the time and the user."""

    reason: str | None = Field(default=None, min_length=1, max_length=REASON_MAX)
    by: str | None = Field(default=None, min_length=1, max_length=128)
    """The name of the user, where requests carry no token: the holder of a token is named by it."""
    dry_run: Flag = False
    """Judge it, and answer the procedure as it would be; store nothing."""


class ClearQuery(ControlQuery):
    reason: str = Field(min_length=1, max_length=REASON_MAX)
    """The repair that was made, and how."""


class LocksQuery(NoQuery):
    page_size: Whole = Field(default=PAGE_SIZE, ge=1, le=PAGE_SIZE_MAX)
    page_token: str | None = Field(default=None, max_length=2_048)
    """`next_page_token` of the page before, unchanged."""


@dataclass(frozen=True, slots=True)
class Steer:
    """The user who steers, and the reason."""

    by: str
    reason: str | None
    dry_run: bool

    @classmethod
    def of(cls, query: ControlQuery, principal: str) -> "Steer":
        """The name of the token's holder counts; a name in the request counts only without a
        token."""
        named = principal if principal != ANONYMOUS else query.by
        return cls(named or ANONYMOUS, query.reason, query.dry_run)

    def command(self, control: Control) -> Command:
        return Command(control, self.by, self.reason)


async def steer(query: Annotated[ControlQuery, Query()], principal: Principal) -> Steer:
    return Steer.of(query, principal)


async def steer_clear(query: Annotated[ClearQuery, Query()], principal: Principal) -> Steer:
    return Steer.of(query, principal)


Steered = Annotated[Steer, Depends(steer)]
Cleared = Annotated[Steer, Depends(steer_clear)]


def _documented(*codes: str) -> Responses:
    all_codes = ("procedure-not-found", "action-not-allowed", "invalid-request", *codes)
    return {
        200: {
            "model": ProcedureBody,
            "description": "It is over, or what it would be (`dry_run`).",
        },
        202: {"model": ProcedureBody, "description": "Stored, and under way."},
        **problems(*LEADER, *all_codes),
    }


async def _control(
    state: Server, procedure: str, steer: Steer, command: Command, wait: int | None = None
) -> Response:
    dry_run = steer.dry_run
    shown = await procedures.control(state, procedure, command, wait or 0, dry_run=dry_run)
    return _shown(shown, steer, 200 if shown.body.done else 202)


def _shown(shown: Shown, steer: Steer, status: int = 200) -> Response:
    """Answers without an ETag for a dry run, which has none."""
    return answer(shown.body) if steer.dry_run else answer(shown.body, status, {"ETag": shown.etag})


@router.post(
    "/procedures/{procedure}/cancel",
    response_model=None,
    responses=_documented("past-point-of-no-return"),
)
async def cancel_procedure(state: Server, procedure: str, steer: Steered, wait: Wait) -> Response:
    """Undo it from where it stands, unless it can only go forward. Again: the same answer."""
    return await _control(state, procedure, steer, steer.command(Control.CANCEL), wait)


@router.post("/procedures/{procedure}/pause", response_model=None, responses=_documented())
async def pause_procedure(state: Server, procedure: str, steer: Steered) -> Response:
    """Stop it where it stands: it keeps its locks, and its deadline moves. Again: the same."""
    return await _control(state, procedure, steer, steer.command(Control.PAUSE))


@router.post("/procedures/{procedure}/resume", response_model=None, responses=_documented())
async def resume_procedure(state: Server, procedure: str, steer: Steered) -> Response:
    """Let it go on. One that is not paused is answered as it is."""
    return await _control(state, procedure, steer, steer.command(Control.RESUME))


@router.post("/procedures/{procedure}/retry", response_model=None, responses=_documented())
async def retry_procedure(state: Server, procedure: str, steer: Steered) -> Response:
    """Try again now what it waits to try again; of a poisoned one, its undo."""
    return await _control(state, procedure, steer, steer.command(Control.RETRY))


@router.post("/procedures/{procedure}/throttle", response_model=None, responses=_documented(*BODY))
async def throttle_procedure(
    state: Server, procedure: str, steer: Steered, request: ThrottleRequest
) -> Response:
    """Set how much the steps that move data rest, and how many rows a reorg reads. A reorg in
    flight follows within seconds; another step goes on as it is."""
    command = steer.command(Control.THROTTLE)
    command = replace(command, percent=request.percent, rows_per_s=request.rows_per_s)
    return await _control(state, procedure, steer, command)


@router.get(
    "/locks",
    response_model=LockList,
    responses=problems(*OF_LEADER, "bad-page-token", "invalid-request"),
)
async def list_locks(
    request: Request, state: Server, query: Annotated[LocksQuery, Query()]
) -> Response:
    """The locks, with their holders and the procedures that wait for them."""
    path = request.url.path
    return answer(await steering.locks(state, path, query.page_size, query.page_token))


@router.get(
    "/poisons", response_model=PoisonList, responses=problems("not-ready", "invalid-request")
)
async def list_poisons(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """The resources that failed changes have left half changed."""
    return answer(await steering.poisons(state))


@router.get(
    "/poisons/{resource}",
    response_model=PoisonBody,
    responses=problems("not-ready", "invalid-request"),
)
async def get_poison(state: Server, resource: str, query: Annotated[NoQuery, Query()]) -> Response:
    """One poison; its resource is named as `table:1024`."""
    return answer(await steering.poison(state, resource))


@router.delete(
    "/poisons/{resource}",
    response_model=ProcedureBody,
    responses=problems(*LEADER, "action-not-allowed", "procedure-not-found", "invalid-request"),
)
async def clear_poison(state: Server, resource: str, steer: Cleared) -> Response:
    """Say that the undo has been finished by hand: the procedure ends, and its locks with it."""
    command = steer.command(Control.CLEAR)
    return _shown(await steering.clear(state, resource, command, dry_run=steer.dry_run), steer)
