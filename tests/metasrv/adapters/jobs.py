"""Jobs as the leader hands them to the Spark driver."""

from metasrv_base.wire.node.inputs import Borrowed
from metasrv_base.wire.node.jobs import MoveJob

NOTHING = Borrowed(region_id="1", epoch=2, root="/new", columns=[], marks=[], files=[], segments=[])


def job(does: str, job_id: str = "j") -> MoveJob:
    return MoveJob(job_id=job_id, procedure=does, attempt="attempts/a", borrowed=NOTHING)
