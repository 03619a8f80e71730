"""SQL text, through metasrv: sent again from where it stopped, until all of it is done."""

import asyncio
import uuid
from typing import TYPE_CHECKING, TypedDict

from metasrv.sdk.control.procedure import OnProgress
from metasrv.sdk.control.service import DEFAULT_WAIT_S, ChangeOptions, ControlService

if TYPE_CHECKING:
    from metasrv_base.wire.language.sql import SqlBody, StatementResult

PATH = "/v1/sql"


class SqlOptions(TypedDict, total=False):
    """Keyword arguments of `client.sql`."""

    catalog: str
    """Holds the schemas that are named without a catalog; by default `main`."""
    schema: str
    """Holds the tables that are named without a schema; by default `public`."""
    wait_s: float
    """Seconds to wait for the end of all, by default 60. Then Unknown with `procedure_id` is
    raised; that change goes on, and the statements behind it are not begun."""
    on_progress: OnProgress
    idempotency_key: str
    """Default: a new one. The same text with the same key is carried out once."""


async def run_sql(
    service: ControlService, text: str, options: SqlOptions
) -> "tuple[StatementResult, ...]":
    """The results of the statements of *text*, in order; a batch from BEGIN to COMMIT has one.

    Raises the error of the first statement that fails, with the facts `statement` (its number in
    what was sent last), `line`, `column` and `excerpt`: those before it are done. Refused
    `invalid-sql`: nothing is.
    """
    loop = asyncio.get_running_loop()
    wait_s = options.get("wait_s", DEFAULT_WAIT_S)
    until = loop.time() + wait_s
    key = options.get("idempotency_key") or str(uuid.uuid4())
    results: list[StatementResult] = []
    begin = 0
    while True:
        left_s = max(0.0, until - loop.time())
        conditions = ChangeOptions(
            wait_s=left_s, idempotency_key=f"{key}-{begin}" if begin else key
        )
        if "on_progress" in options:
            conditions["on_progress"] = options["on_progress"]
        body = await _send(service, text, begin, options, conditions)
        results += body.results
        last = results[-1] if results else None
        if last is not None and last.procedure is not None:
            left_s = max(0.0, until - loop.time())
            results[-1] = await _over(service, last, left_s, options.get("on_progress"))
        if body.rest is None:
            return tuple(results)
        begin = body.rest


async def _send(
    service: ControlService, text: str, begin: int, options: SqlOptions, conditions: ChangeOptions
) -> "SqlBody":
    """Sends the text from a statement on. What is before it is sent as blanks, so that places in
    the text stay what they are."""
    from metasrv_base.wire.language.sql import SqlBody

    before = "".join(char if char == "\n" else " " for char in text[:begin])
    request = {
        "text": before + text[begin:],
        "catalog": options.get("catalog", "main"),
        "schema": options.get("schema", "public"),
    }
    answer = await service.ask("POST", PATH, request, **conditions)
    return answer.body(SqlBody)


async def _over(
    service: ControlService,
    result: "StatementResult",
    wait_s: float,
    on_progress: OnProgress | None,
) -> "StatementResult":
    """The result once its procedure has ended."""
    assert result.procedure is not None
    ended = await service.follow(result.procedure.id, wait_s, on_progress)
    applied = (ended.result or {}).get("applied") is not False
    version = ended.catalog_version
    return result.model_copy(
        update={"procedure": None, "applied": applied, "catalog_version": version}
    )
