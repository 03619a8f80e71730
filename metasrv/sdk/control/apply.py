"""Desired states, through metasrv: sent again after each change that was not over, until all of
the plan is done."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from metasrv.sdk.control.procedure import OnProgress
from metasrv.sdk.control.service import DEFAULT_WAIT_S, ChangeOptions, ControlService
from metasrv_base.errors import MetaError, Unknown

if TYPE_CHECKING:
    from metasrv_base.wire.language.apply import ApplyBody
    from metasrv_base.wire.language.declared import DesiredState

PATH = "/v1/apply"


class ApplyOptions(TypedDict, total=False):
    """Keyword arguments of `client.apply`."""

    sql: Sequence[Mapping[str, str]]
    """More of the desired state: `{name, text}` and, if they are not `main` and `public`, `catalog`
    and `schema`."""
    mode: str
    """`apply`, the default, or `plan`, which changes nothing."""
    prune: bool
    """Drop the tables that are not declared, in schemas that are."""
    allow_destructive: bool
    """Do also what loses values, rules or indexes; else such a plan is refused."""
    plan_hash: str
    """Digest of the plan that was looked at; another one by now is a Conflict `plan-changed`."""
    wait_s: float
    """Seconds to wait for the end of all, by default 60. Then Unknown with `procedure_id` is
    raised; that change goes on, and the operations behind it are not begun."""
    on_progress: OnProgress


async def run_apply(
    service: ControlService,
    desired: "DesiredState | Mapping[str, Any]",
    options: ApplyOptions,
) -> "ApplyBody":
    """The plan and, in mode `apply`, its steps, which are done. In mode `plan` a change that is
    under way at an object of the plan is waited for.

    Raises Refused for a state that cannot be, `not-in-place`, `destructive-plan`; Conflict
    `plan-changed`; and the error of the first step that fails: those before it are done.
    """
    from metasrv_base.wire.language.apply import AppliedStep

    loop = asyncio.get_running_loop()
    until = loop.time() + options.get("wait_s", DEFAULT_WAIT_S)
    on_progress = options.get("on_progress")
    request = _request(desired, options)
    first = body = await _send(service, request, until, on_progress)
    steps = list(body.steps)
    while (procedure := body.procedure) is not None:
        left_s = max(0.0, until - loop.time())
        if left_s == 0 and request["mode"] == "plan":
            return body
        if body.is_own:
            ended = await service.follow(procedure.id, left_s, on_progress)
            version, before = ended.catalog_version, len(body.operations)
            before -= sum(step.operations for step in body.steps)
            request["plan_hash"] = body.plan_hash
            body = await _send(service, request, until, on_progress)
            number = before - len(body.operations)
            steps.append(
                AppliedStep(operations=number, procedure_id=procedure.id, catalog_version=version)
            )
        else:
            await _ended(service, procedure.id, left_s, on_progress)
            body = await _send(service, request, until, on_progress)
            first = body
        steps += body.steps
    return first.model_copy(
        update={
            "steps": tuple(steps),
            "procedure": None,
            "is_own": False,
            "plan_hash": body.plan_hash,
            "catalog_version": body.catalog_version,
        }
    )


async def export(service: ControlService, catalog: str, schema: str | None) -> "DesiredState":
    """Raises NotFound."""
    from metasrv_base.wire.language.declared import DesiredState

    params = {"catalog": catalog, **({} if schema is None else {"schema": schema})}
    return await service.read_catalog(DesiredState, "/v1/export", params)


def _request(desired: "DesiredState | Mapping[str, Any]", options: ApplyOptions) -> dict[str, Any]:
    from metasrv_base.wire.language.declared import DesiredState

    if isinstance(desired, DesiredState):
        desired = desired.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {
        "desired": desired,
        "sql": list(options.get("sql", ())),
        "mode": options.get("mode", "apply"),
        "prune": options.get("prune", False),
        "allow_destructive": options.get("allow_destructive", False),
        "plan_hash": options.get("plan_hash"),
    }


async def _send(
    service: ControlService,
    request: dict[str, Any],
    until: float,
    on_progress: OnProgress | None,
) -> "ApplyBody":
    from metasrv_base.wire.language.apply import ApplyBody

    left_s = max(0.0, until - asyncio.get_running_loop().time())
    conditions = ChangeOptions(wait_s=left_s)
    if on_progress is not None:
        conditions["on_progress"] = on_progress
    answer = await service.ask("POST", PATH, request, **conditions)
    return answer.body(ApplyBody)


async def _ended(
    service: ControlService, procedure: str, wait_s: float, on_progress: OnProgress | None
) -> None:
    """Waits for another's change, however it ends. Raises Unknown: it has not ended."""
    try:
        await service.follow(procedure, wait_s, on_progress)
    except Unknown:
        raise
    except MetaError:
        return
