"""A job that does not work is told from one that nobody carried out."""

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, PythonException

from dataplane.pipelines.failures import code_of
from metasrv_base.errors import Refused, Unavailable

LOST = (
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 0.0 (TID 3) (host executor 1): ExecutorLostFailure (executor 1 exited "
    "unrelated to the running tasks) Reason: Remote RPC client disassociated."
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyError("x"), "job-failed"),
        (PythonException("KeyError: 'x' in an executor"), "job-failed"),
        (AnalysisException("no such column"), "job-failed"),
        (PythonException("OSError: [Errno 28] No space left on device"), "not-ready"),
        (PythonException("MemoryError"), "not-ready"),
        (PythonException(LOST), "not-ready"),
        (Py4JError("PythonRDD does not exist in the JVM"), "not-ready"),
        (Py4JNetworkError("the JVM is gone"), "not-ready"),
        (OSError(28, "no space left"), "not-ready"),
        (Unavailable("region-lost"), "region-lost"),
        (Refused("invalid-request"), "invalid-request"),
    ],
    ids=repr,
)
def test_given_an_error_of_a_job_when_it_is_told_then_by_what_trying_again_is_good_for(
    error: Exception, code: str
) -> None:
    assert code_of(error) == code


def test_given_a_job_that_was_cancelled_when_it_fails_then_it_was_not_carried_out() -> None:
    assert code_of(Py4JError("cancelled"), is_cancelled=True) == "not-ready"
