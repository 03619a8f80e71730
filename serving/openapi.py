"""The OpenAPI document of a program: its text as it is checked in, and each error answer once."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

_CODE = re.compile(r"`([a-z0-9-]+)`: ")
_SUCCESSES = ("1", "2", "3")


def document_text(document: dict[str, Any]) -> str:
    """The same bytes for equal documents: CI compares them with the file."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def share_answers(document: dict[str, Any]) -> dict[str, Any]:
    """*document*, changed in place: error answers that several operations give are among its
    components. A second call changes nothing.

    A shared answer is named by its problem codes, as `no-leader.not-ready`; one that names no codes
    is `problem`.
    """
    errors = list(_errors(document))
    uses = Counter(_text(answers[status]) for answers, status in errors)
    shared = document["components"].setdefault("responses", {})
    for answers, status in errors:
        answer = answers[status]
        if uses[_text(answer)] > 1:
            name = ".".join(_CODE.findall(answer["description"])) or "problem"
            assert shared.setdefault(name, answer) == answer, name
            answers[status] = {"$ref": f"#/components/responses/{name}"}
    return document


def _errors(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Holders of answers that are written out, each with the status of one."""
    for operations in document["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            for status in list(answers):
                if not status.startswith(_SUCCESSES) and "$ref" not in answers[status]:
                    yield answers, status


def _text(answer: dict[str, Any]) -> str:
    return json.dumps(answer, sort_keys=True)
