"""The document of the HTTP surface, made from the routes and checked in: CI fails on drift."""

from typing import Any

from metasrv.api.documents.openapi_fixups import shaped
from metasrv.api.routes.routes import bare_app
from serving.openapi import document_text

PATH = "openapi/metasrv.v1.json"


def documents() -> dict[str, str]:
    """Path in this checkout -> text."""
    return {PATH: document_text(document())}


def document() -> dict[str, Any]:
    """The OpenAPI document, without the framework's own errors, which this API never answers."""
    return shaped(bare_app().openapi())
