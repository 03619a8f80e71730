"""/docs and /openapi.json: what this server understands, told by itself."""

import asyncio
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from metasrv.api.documents.docs_page import POLICY, page
from metasrv.api.documents.documented import problems
from metasrv.api.documents.shaped import shaped

router = APIRouter(tags=["admin"])


@router.get(
    "/docs",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, **problems()},
)
async def docs(request: Request) -> Response:
    """Every route and model as one page, which loads nothing."""
    found = await asyncio.to_thread(_document, request)
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
    return Response(page(found), 200, headers, media_type="text/html; charset=utf-8")


@router.get(
    "/openapi.json",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}, **problems()},
)
async def openapi_document(request: Request) -> Response:
    """The OpenAPI document of this very server."""
    found = await asyncio.to_thread(_document, request)
    return Response(orjson.dumps(found), 200, media_type="application/json")


def _document(request: Request) -> dict[str, Any]:
    """Made at the first call, which takes a while; the framework keeps it."""
    return shaped(request.app.openapi())
