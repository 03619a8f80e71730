"""Speaks the driver's protocol without Spark. What a job does is in the name of its procedure.

`done`: ends at once. `wait`: ends when cancelled. `deaf`: never ends. `nonsense`: a line that is no
answer. `die`: the driver ends. A throttle is answered with its rate. The first argument: `ready`,
or what goes wrong at the start.
"""

import os
import sys

from metasrv_base.wire.model import WireModel
from metasrv_base.wire.node.jobs import (
    REQUEST,
    CancelJob,
    DriverReady,
    Job,
    JobFailed,
    JobProgress,
    MoveResult,
    ThrottleJob,
)


def say(answer: WireModel) -> None:
    print(answer.model_dump_json(), flush=True)


def begin(job: Job) -> None:
    say(JobProgress(job_id=job.job_id, done=1, total=2, unit="bytes"))
    if job.procedure == "done":
        say(
            MoveResult(
                job_id=job.job_id,
                files=[],
                rows_in=os.getpid(),
                rows_out=0,
                bytes_in=0,
                bytes_out=0,
                copied_files=0,
                rewritten_segments=0,
            )
        )
    elif job.procedure == "nonsense":
        print("log4j:WARN", flush=True)
    elif job.procedure == "die":
        os._exit(1)


def main() -> int:
    if sys.argv[1] == "silent":
        sys.stdin.read()
        return 0
    if sys.argv[1] != "ready":
        return 3
    say(DriverReady(pid=os.getpid(), master="none", spark="none", java="none"))
    deaf: set[str] = set()
    for line in sys.stdin:
        request = REQUEST.validate_json(line)
        if isinstance(request, CancelJob):
            if request.job_id not in deaf:
                say(JobFailed(job_id=request.job_id, code="not-ready", detail="cancelled"))
            continue
        if isinstance(request, ThrottleJob):
            rate = request.rows_per_s or 0
            say(JobProgress(job_id=request.job_id, done=rate, total=rate, unit="rows/s"))
            continue
        if request.procedure == "deaf":
            deaf.add(request.job_id)
        begin(request)
    return 0


if __name__ == "__main__":
    sys.exit(main())
