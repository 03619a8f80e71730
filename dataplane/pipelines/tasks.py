"""Work for executors, and how it ends: a failure comes back as a value, with its code."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue
from pyspark import TaskContext
from pyspark.sql import SparkSession

from dataplane.pipelines.pace import PaceAddress
from metasrv_base.errors import Corrupt, MetaError, Refused, Unavailable
from metasrv_base.wire.problem.problems import safe

T = TypeVar("T")


class Counter(Protocol):
    """Adds on executors, is read in the driver; a task's share arrives when the task ends."""

    def add(self, term: int) -> None: ...


class Watch(Protocol):
    """The driver's side of a running job."""

    def begin(self, total: int) -> Counter:
        """Starts the count of bytes."""
        ...

    def paced(self, rows: int) -> AbstractContextManager[PaceAddress]:
        """Starts the count of rows, of which tasks tell before they go on with them."""
        ...

    def check(self) -> None:
        """Raises Unavailable once the job has been cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a task, as a value, so that Spark does not retry a task whose input is
    wrong."""

    code: str
    detail: str
    refused: dict[str, JsonValue] | None = None
    """Facts of a refusal; None: it is none."""


def on_executors(spark: SparkSession, task: Callable[[Any], T], work: Sequence[Any]) -> list[T]:
    """One task for each piece of work, in one job of Spark; none for no work. Raises the first
    failure, a refusal before all others."""
    return _collected(spark, task, work, len(work))


def shortly(spark: SparkSession, task: Callable[[Any], T], work: Sequence[Any]) -> list[T]:
    """The same for pieces that take less time than a task does to begin: each core has one task
    with some of them."""
    return _collected(spark, task, work, min(len(work), spark.sparkContext.defaultParallelism))


def _collected(
    spark: SparkSession, task: Callable[[Any], T], work: Sequence[Any], tasks: int
) -> list[T]:
    if not work:
        return []
    pieces = spark.sparkContext.parallelize(work, tasks)
    return unless_failed(pieces.map(partial(guarded, task)).collect())


def own_name(task: str) -> str:
    """A name for a file of this very attempt of a task: one that Spark runs twice does not meet
    itself."""
    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    return f"{task}-{context.taskAttemptId()}"


def guarded(task: Callable[[Any], T], work: Any) -> T | Failure:
    try:
        return task(work)
    except MetaError as error:
        return failure_of(error)


def failure_of(error: MetaError) -> Failure:
    match error:
        case Corrupt():
            return Failure("region-lost", str(error))
        case Unavailable():
            return Failure(error.code, str(error))
        case Refused():
            facts = {name: safe(value) for name, value in error.facts.items()}
            return Failure(error.code, str(error), facts)
        case _:
            return Failure("not-ready", str(error))


def unless_failed(results: Sequence[T | Failure]) -> list[T]:
    failures = [result for result in results if isinstance(result, Failure)]
    for failure in failures:
        if failure.refused is not None:
            raise Refused(failure.code, **failure.refused)
    if failures:
        raise Unavailable(failures[0].code, detail=failures[0].detail, failed=len(failures))
    return [result for result in results if not isinstance(result, Failure)]
