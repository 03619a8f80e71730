"""Every error of a program's routes as problem+json: our own, FastAPI's and Starlette's."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from metasrv_base.concurrency.run_in_thread import run_in_thread
from metasrv_base.errors import MetaError, NotFound, Refused
from metasrv_base.wire.problem.problems import FieldError, Problem, field_errors, problem_of

PROBLEM: Mapping[int | str, dict[str, Any]] = {
    "default": {"model": Problem, "description": "Any refusal or failure (problem+json)."}
}


def pointed_at(error: RequestValidationError) -> tuple[FieldError, ...]:
    """Each fault by a pointer; that of a parameter is its name."""
    details = [{**detail, "loc": detail["loc"][1:]} for detail in error.errors()]
    return tuple(field_errors(details, error.body))


def as_it_is(error: MetaError, path: str) -> MetaError:
    return error


def answer_errors(
    app: FastAPI,
    *,
    faults: Callable[[RequestValidationError], tuple[FieldError, ...]] = pointed_at,
    shown: Callable[[MetaError, str], MetaError] = as_it_is,
) -> None:
    """Answers every error of *app*'s routes as problem+json.

    *faults* lists the faults of a body or of parameters that FastAPI refuses; *shown* returns an
    error as the clients of a path may see it.
    """

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, MetaError)
        path, request_id = request.url.path, getattr(request.state, "request_id", "")
        is_short = "results" not in error.facts  # rows: as many as an answer may have
        status, headers, data = await run_in_thread(
            is_short, problem_bytes, shown(error, path), path, request_id
        )
        return Response(data, status, headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return await refuse(request, Refused("invalid-request", errors=faults(error)))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return await refuse(request, _as_ours(request, error))

    app.add_exception_handler(MetaError, refuse)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def problem_bytes(
    error: MetaError, path: str, request_id: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an error's answer."""
    status, headers, body = problem_of(error, path, request_id)
    return status, headers, orjson.dumps(body)


def _as_ours(request: Request, error: HTTPException) -> MetaError:
    """An error that the framework raises by itself."""
    if isinstance(error.__cause__, MetaError):
        return error.__cause__
    if error.status_code == 405:
        return Refused("method-not-allowed", method=request.method)
    if error.status_code == 404:
        return NotFound(what="route", name=request.url.path)
    return Refused("invalid-request", reason=str(error.detail))
