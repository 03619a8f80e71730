"""Every error of a program's routes as problem+json: our own, FastAPI's and Starlette's."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from metasrv_base.errors import MetaError, NotFound, Refused
from metasrv_base.wire.problem.problems import Problem, field_errors, problem_of

PROBLEM: Mapping[int | str, dict[str, Any]] = {
    "default": {"model": Problem, "description": "Any refusal or failure (problem+json)."}
}


def answer_errors(app: FastAPI) -> None:
    app.add_exception_handler(MetaError, _answer)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, MetaError)
    request_id = getattr(request.state, "request_id", "")
    status, headers, body = problem_of(error, request.url.path, request_id)
    return Response(orjson.dumps(body), status, headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = [{**detail, "loc": detail["loc"][1:]} for detail in error.errors()]
    refused = Refused("invalid-request", errors=field_errors(details, error.body))
    return await _answer(request, refused)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, MetaError):
        return await _answer(request, error.__cause__)
    if error.status_code == 405:
        return await _answer(request, Refused("method-not-allowed", method=request.method))
    if error.status_code == 404:
        return await _answer(request, NotFound(what="route", name=request.url.path))
    return await _answer(request, Refused("invalid-request", reason=str(error.detail)))
