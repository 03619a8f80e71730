"""SQL text, through metasrv and frontends: sent again from where it stopped, until all of it is
done."""

import asyncio
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

import orjson

from metasrv.sdk.control.procedure import OnProgress
from metasrv.sdk.control.service import DEFAULT_WAIT_S, ChangeOptions, ControlService
from metasrv.sdk.sql.sql_parts import SqlPart, parts_of
from metasrv_base.clock import Clock
from metasrv_base.concurrency.run_in_thread import run_in_thread
from metasrv_base.errors import MetaError

if TYPE_CHECKING:
    from metasrv.sdk.rows.frontends import Frontends
    from metasrv_base.wire.language.sql import SqlBody, StatementResult

PATH = "/v1/sql"
SHORT_CHARS = 65_536
"""A text that is divided on the event loop."""


class SqlOptions(TypedDict, total=False):
    """Keyword arguments of `client.sql`."""

    catalog: str
    """Holds the schemas that are named without a catalog; by default `main`."""
    schema: str
    """Holds the tables that are named without a schema; by default `public`."""
    wait_s: float
    """Seconds to wait for the end of all, by default 60. Then Unknown with `procedure_id` is
    raised; that change goes on, and the statements behind it are not begun."""
    max_lag: int | None
    """The age in ms that rows of queries of tables may have, 1 to 3,600,000, so that copies may
    answer. Default, and None: leaders answer, with all rows."""
    on_progress: OnProgress
    on_result: "Callable[[StatementResult], None]"
    """Called with the result of each statement, in order, once it is known: also with those before
    a statement that fails. By the synchronous client in a thread of its own."""
    idempotency_key: str
    """Default: a new one. The same text with the same key is carried out once."""


@dataclass(frozen=True, slots=True)
class SqlRun:
    """One call of `client.sql`."""

    service: ControlService
    frontends: "Callable[[], Frontends]"
    """Called for statements about rows alone."""
    clock: Clock
    options: SqlOptions
    key: str
    until: float
    """Seconds of the loop's clock."""
    results: "list[StatementResult]" = field(default_factory=list)
    """The results known so far."""

    @property
    def shown_version(self) -> int:
        """The newest version of the catalog that a result shows; 0: none does."""
        return max((result.catalog_version or 0 for result in self.results), default=0)

    def add(self, part: SqlPart, results: "Iterable[StatementResult]") -> None:
        """Takes *results*, whose places are those in *part*."""
        for result in results:
            moved = result.model_copy(update={"offset": result.offset + part.begin})
            self.results.append(moved)
            if "on_result" in self.options:
                self.options["on_result"](moved)

    async def failed(self, part: SqlPart, error: MetaError, begin: int | None = None) -> MetaError:
        """Takes the results before a fault, and returns it with its place in the whole text.
        *begin*: where its statement begins in *part*, if the error does not say it."""
        self.add(part, _before(error))
        is_short = part.end <= SHORT_CHARS
        return await run_in_thread(is_short, part.placed, error, begin)

    @property
    def left_s(self) -> float:
        return max(0.0, self.until - asyncio.get_running_loop().time())


async def run_sql(
    service: ControlService,
    frontends: "Callable[[], Frontends]",
    clock: Clock,
    text: str,
    options: SqlOptions,
) -> "tuple[StatementResult, ...]":
    """The results of the statements of *text*, in order; a batch from BEGIN to COMMIT has one.
    Statements about the catalog go to metasrv, those about rows to frontends.

    Raises the error of the first statement that fails, with the facts `statement` (its number),
    `line`, `column` and `excerpt`: those before it are done. Refused `invalid-sql`: none of the
    statements about the catalog, or about rows, that stand together with it is done, and the fact
    `statements_done` is the number of those before them.
    """
    loop = asyncio.get_running_loop()
    key = options.get("idempotency_key") or str(uuid.uuid4())
    until = loop.time() + options.get("wait_s", DEFAULT_WAIT_S)
    run = SqlRun(service, frontends, clock, options, key, until)
    # All of it is divided before anything is sent: a string that does not end stops the whole text.
    parts = _listed(text) if len(text) <= SHORT_CHARS else await asyncio.to_thread(_listed, text)
    for part in parts:
        send = _rows_sent if part.of_rows else _changes_sent
        left: SqlPart | None = part
        while left is not None:
            rest = await send(run, left)
            left = None if rest is None else left.rest(rest)
    return tuple(run.results)


def _listed(text: str) -> list[SqlPart]:
    return list(parts_of(text))


def _before(error: MetaError) -> "tuple[StatementResult, ...]":
    """Takes the results of the statements before the one that failed out of the error's facts."""
    from metasrv_base.wire.language.sql import SqlBody

    results = error.facts.pop("results", ())
    return SqlBody.model_validate_json(orjson.dumps({"results": results})).results


async def _changes_sent(run: SqlRun, part: SqlPart) -> int | None:
    """Returns where the statements begin that were not begun."""
    start = part.begin + part.done
    conditions = ChangeOptions(
        wait_s=run.left_s, idempotency_key=f"{run.key}-{start}" if start else run.key
    )
    if "on_progress" in run.options:
        conditions["on_progress"] = run.options["on_progress"]
    try:
        body = await _send(run, part.text, conditions)
    except MetaError as error:
        raise await run.failed(part, error) from error
    for result in body.results:
        if result.procedure is not None:  # the last one
            try:
                result = await _over(run, result)
            except MetaError as error:
                raise await run.failed(part, error, result.offset) from error
        run.add(part, (result,))
    return body.rest


async def _rows_sent(run: SqlRun, part: SqlPart) -> int | None:
    """Returns where the statements begin that were not begun.

    Sent again under the same key, as long as it is unknown whether it was done: regions know each
    statement, so that none is done twice.
    """
    from metasrv.sdk.rows.attempts import Copies
    from metasrv_base.wire.frontend.rows import SENT_MS
    from metasrv_base.wire.language.sql import SqlBody

    frontends, sent_ms = run.frontends(), run.clock.wall_ms()
    headers = {"idempotency-key": f"{run.key}-{part.begin}", SENT_MS: str(sent_ms)}
    request: dict[str, object] = {"text": part.text, **_session(run.options)}
    if newest_version := run.shown_version:
        request["min_catalog_version"] = newest_version
    if (max_lag := run.options.get("max_lag")) is not None:
        request["max_lag"] = max_lag
    copies = Copies()
    try:
        with copies.settled():
            answer = await frontends.ask(
                "POST", PATH, run.until, copies, json=request, headers=headers
            )
    except MetaError as error:
        raise await run.failed(part, error) from error
    body = answer.body(SqlBody)
    run.add(part, body.results)
    return body.rest


def _session(options: SqlOptions) -> dict[str, str]:
    return {
        "catalog": options.get("catalog", "main"),
        "schema": options.get("schema", "public"),
    }


async def _send(run: SqlRun, text: str, conditions: ChangeOptions) -> "SqlBody":
    from metasrv_base.wire.language.sql import SqlBody

    request = {"text": text, **_session(run.options)}
    answer = await run.service.ask("POST", PATH, request, **conditions)
    return answer.body(SqlBody)


async def _over(run: SqlRun, result: "StatementResult") -> "StatementResult":
    """The result once its procedure has ended."""
    assert result.procedure is not None
    on_progress = run.options.get("on_progress")
    ended = await run.service.follow(result.procedure.id, run.left_s, on_progress)
    applied = (ended.result or {}).get("applied") is not False
    version = ended.catalog_version
    return result.model_copy(
        update={"procedure": None, "applied": applied, "catalog_version": version}
    )
