"""`if_exists`: a change of what does not exist is a success that changes nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from keys.catalog.catalog import Catalog
from keys.model.records import Resource
from metasrv.service.requests.ddl_request import (
    AlreadyAbsent,
    DdlPlan,
    DdlRequest,
    RequestFacts,
)
from procedures.machine import Kind

Exists = Callable[[Catalog], bool]


def unless_absent(
    request: DdlRequest, kind: Kind[Any], type_name: str, name: str, exists: Exists
) -> DdlRequest:
    """*request*; with `if_exists`, an object of that type and full name that does not exist is the
    answer. Whatever else the request names must exist all the same."""
    if not request.context.if_exists:
        return request
    absent = AlreadyAbsent(kind, Resource(type=type_name, id="", name=name))

    def plan(facts: RequestFacts) -> DdlPlan:
        if exists(facts.catalog):
            return request.plan(facts)
        request.context.require_no_version()
        return absent

    return replace(request, plan=plan)
