"""Error answers of an OpenAPI document, as written out."""

from copy import deepcopy
from typing import Any


def resolved(document: dict[str, Any]) -> dict[str, Any]:
    """With each reference to a response replaced by what it names."""
    found = deepcopy(document)
    shared = found["components"].pop("responses", {})
    for operations in found["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                name = answer.get("$ref", "").removeprefix("#/components/responses/")
                operation["responses"][status] = shared[name] if name else answer
    return found
