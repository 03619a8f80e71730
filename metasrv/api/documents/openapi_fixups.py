"""The framework's document as ours: our problem, no errors that we never send, each error once."""

from typing import Any

from fastapi.encoders import jsonable_encoder

from metasrv_base.wire.problem.problems import Problem
from serving.openapi import share_answers

_SCHEMA = "#/components/schemas/{model}"
PROBLEM = _SCHEMA.format(model="Problem")
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def shaped(document: dict[str, Any]) -> dict[str, Any]:
    """Changes *document* in place, and returns it. A second call changes nothing."""
    problem = Problem.model_json_schema(mode="serialization", ref_template=_SCHEMA)
    parts = {**problem.pop("$defs"), "Problem": problem}
    schemas = document["components"]["schemas"]
    schemas |= jsonable_encoder(parts, exclude_none=True)  # as the framework writes all others
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    return share_answers(document)
