"""The document of a frontend's HTTP surface as a checked-in file: CI fails on drift."""

import json
from typing import Any

from dataplane.frontend.http.app import bare_app
from dataplane.frontend.http.documents import completed

PATH = "openapi/frontend.v1.json"


def documents() -> dict[str, str]:
    """Path in this checkout -> text."""
    return {PATH: json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"}


def document() -> dict[str, Any]:
    return completed(bare_app().openapi())
