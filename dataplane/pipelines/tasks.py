"""Work for executors, and how it ends: a failure comes back as a value, with its code."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from pyspark.sql import SparkSession

from base.errors import Corrupt, MetaError, Unavailable
from dataplane.pipelines.pace import PaceAddress

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
    """How a task failed, as a value: what is wrong with an input is not mended by Spark's retry."""

    code: str
    detail: str


def on_executors(spark: SparkSession, task: Callable[[Any], T], work: Sequence[Any]) -> list[T]:
    """One task for each piece of work. Raises the first failure."""
    pieces = spark.sparkContext.parallelize(work, max(len(work), 1))
    return unless_failed(pieces.map(partial(guarded, task)).collect())


def guarded(task: Callable[[Any], T], work: Any) -> T | Failure:
    try:
        return task(work)
    except Corrupt as error:
        return Failure("region-lost", str(error))
    except Unavailable as error:
        return Failure(error.code, str(error))
    except MetaError as error:
        return Failure("not-ready", str(error))


def unless_failed(results: Sequence[T | Failure]) -> list[T]:
    failures = [one for one in results if isinstance(one, Failure)]
    if failures:
        raise Unavailable(failures[0].code, detail=failures[0].detail, failed=len(failures))
    return [one for one in results if not isinstance(one, Failure)]
