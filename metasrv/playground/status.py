"""The state of the playground of a folder, from its record, its document and its processes."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from metasrv.playground.document import NAME, PlaygroundBody
from metasrv.playground.holder import SUSPENDED, PlaygroundHolder, process_state, recorded
from metasrv_base.schema.instants import instant_text
from metasrv_base.wire.model import Listed, WireModel

State = Literal["running", "changing", "killed", "stopped"]
"""`changing`: it starts or stops. `killed`: it ended without stopping, and left its record."""
ProgramState = Literal["running", "suspended", "ended"]


class ProgramStatus(WireModel):
    id: str
    state: ProgramState
    pid: int
    """The last process, which may have ended."""
    url: str


class PlaygroundStatus(WireModel):
    state: State
    folder: str
    pid: int | None
    """The process that started the others; null if none is recorded."""
    since: str | None
    """RFC 3339."""
    metasrv: Listed[str]
    """URLs of the service."""
    programs: Listed[ProgramStatus]

    @property
    def is_healthy(self) -> bool:
        return self.state == "running" and all(
            program.state == "running" for program in self.programs
        )


def status_of(folder: Path) -> PlaygroundStatus:
    """A process counts as a program of the playground only while the playground's own process is
    its parent: an id may have been given to another process meanwhile."""
    holder = recorded(folder)
    document = None if holder is None else document_in(folder)
    programs: tuple[ProgramStatus, ...] = ()
    if holder is not None and document is not None:
        programs = tuple(
            ProgramStatus(id=id, state=_state(pid, holder), pid=pid, url=url)
            for id, pid, url in _programs(document)
        )
    return PlaygroundStatus(
        state=_playground_state(holder, document),
        folder=str(folder),
        pid=None if holder is None else holder.pid,
        since=None if holder is None else instant_text(holder.since_ms // 1000, "s"),
        metasrv=() if document is None else tuple(document.metasrv),
        programs=programs,
    )


def document_in(folder: Path) -> PlaygroundBody | None:
    """None while the playground starts or stops, and where there is none."""
    try:
        return PlaygroundBody.model_validate_json((folder / NAME).read_bytes())
    except (OSError, ValidationError):
        return None


def _playground_state(holder: PlaygroundHolder | None, document: PlaygroundBody | None) -> State:
    if holder is None:
        return "stopped"
    if not holder.is_running:
        return "killed"
    return "changing" if document is None else "running"


def _programs(document: PlaygroundBody) -> list[tuple[str, int, str]]:
    """(id, pid, URL), in the order of their start."""
    pids = document.pids
    etcd = [] if pids.etcd is None else [("etcd", pids.etcd, document.etcd[0])]
    servers = zip(pids.metasrv.items(), document.metasrv, strict=True)
    return [
        *etcd,
        *((id, pid, url) for (id, pid), url in servers),
        *((id, node.pid, node.url) for id, node in document.datanodes.items()),
        *((id, frontend.pid, frontend.url) for id, frontend in document.frontends.items()),
    ]


def _state(pid: int, holder: PlaygroundHolder) -> ProgramState:
    process = process_state(pid)
    if process is None or process.parent != holder.pid or not holder.is_running:
        return "ended"
    return "suspended" if process.state in SUSPENDED else "running"
