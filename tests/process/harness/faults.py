"""Faults of one process of a cluster with three etcd members, as data: a name, a context.

The fault holds inside the context; leaving it heals. Some need more than an ordinary user may do
(strace, a mount): they say what they need, and the long form names those it had to leave out.
"""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from pathlib import Path

from keys.store.etcd import EtcdKv
from keys.store.kv import Put, Request
from metasrv_base.errors import Unavailable, Unknown
from tests.etcd.cluster import EtcdCluster
from tests.etcd.links import Links
from tests.etcd.process import EtcdProcess
from tests.keys.store.conformance.operators import EtcdOperator
from tests.process.harness.rig import Rig

FSYNC_MS = 300
ELECTION_S_MAX = 120
ENDED_S_MAX = 60
FILLER = b"x" * 300_000
FILLERS_MAX = 200
DISK_BYTES = 256 << 20  # etcd takes 64 MiB for each log file before it writes to it


@dataclass(frozen=True, slots=True)
class Field:
    """The targets of faults."""

    rig: Rig
    etcd: EtcdCluster
    links: Links
    """Between etcd's members."""
    small_disk: Path | None
    """A file system of its own under the last member; None where none may be made."""


Fault = Callable[[Field], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def metasrv_killed(field: Field) -> AsyncIterator[None]:
    """The one that leads."""
    leader = await field.rig.leader()
    await field.rig.kill(leader)
    yield
    await field.rig.restart(leader)


@asynccontextmanager
async def metasrv_stopped(field: Field) -> AsyncIterator[None]:
    async with _stopped(field.rig, await field.rig.leader()):
        yield


@asynccontextmanager
async def datanode_killed(field: Field) -> AsyncIterator[None]:
    await field.rig.kill("dn-1")
    yield
    await field.rig.restart("dn-1")


@asynccontextmanager
async def datanode_stopped(field: Field) -> AsyncIterator[None]:
    async with _stopped(field.rig, "dn-2"):
        yield


@asynccontextmanager
async def _stopped(rig: Rig, id: str) -> AsyncIterator[None]:
    await rig.kill(id, signal.SIGSTOP)
    yield
    await rig.kill(id, signal.SIGCONT)


@asynccontextmanager
async def etcd_leader_killed(field: Field) -> AsyncIterator[None]:
    async with _killed(await field.etcd.leader()):
        yield


@asynccontextmanager
async def etcd_follower_killed(field: Field) -> AsyncIterator[None]:
    leader = await field.etcd.leader()
    async with _killed(next(one for one in field.etcd.members if one is not leader)):
        yield


@asynccontextmanager
async def _killed(member: EtcdProcess) -> AsyncIterator[None]:
    await asyncio.to_thread(member.kill)
    yield
    await asyncio.to_thread(member.start)


@asynccontextmanager
async def etcd_leader_frozen(field: Field) -> AsyncIterator[None]:
    """It takes connections and answers nobody: neither members nor clients."""
    leader = await field.etcd.leader()
    leader.pause()
    yield
    leader.resume()


@asynccontextmanager
async def etcd_leader_isolated(field: Field) -> AsyncIterator[None]:
    """Clients reach it; the other members do not, and choose another."""
    leader = await field.etcd.leader()
    field.links.cut_off(field.etcd.members.index(leader))

    async def another_leads() -> bool:
        return await field.etcd.leader() is not leader

    try:
        await field.rig.until(another_leads, ELECTION_S_MAX)
        yield
    finally:
        field.links.heal()


@asynccontextmanager
async def etcd_no_space(field: Field) -> AsyncIterator[None]:
    """All members refuse what would store something, until a person lifts the alarm."""
    operator = EtcdOperator((await field.etcd.leader()).endpoint)
    await operator.arm()
    yield
    await operator.disarm()


@asynccontextmanager
async def etcd_slow_disk(field: Field) -> AsyncIterator[None]:
    """Each fdatasync of etcd's leader takes FSYNC_MS longer."""
    program = shutil.which("strace")
    assert program, "no strace"
    leader = await field.etcd.leader()
    slow = f"inject=fdatasync,fsync:delay_enter={FSYNC_MS * 1000}"
    tracer = await asyncio.create_subprocess_exec(
        *(program, "-f", "-q", "-e", "trace=fdatasync,fsync", "-e", slow, "-p", str(leader.pid)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
        assert tracer.returncode is None, "strace could not look at etcd"
    finally:
        with suppress(ProcessLookupError):
            tracer.terminate()
        await tracer.wait()


@asynccontextmanager
async def etcd_disk_full(field: Field) -> AsyncIterator[None]:
    """The last member's: it ends by itself, and starts again once there is space."""
    assert field.small_disk, "no file system of its own may be made here"
    member, filler = field.etcd.members[-1], field.small_disk / "filler"
    with filler.open("wb", buffering=0) as opened, suppress(OSError):
        while opened.write(FILLER):
            pass
    kv = await EtcdKv.connect([one.endpoint for one in field.etcd.members[:-1]], b"/filler/")
    for _ in range(FILLERS_MAX):
        if member.has_ended:
            break
        with suppress(Unknown, Unavailable):  # it may have been the leader that ended
            await kv.txn(Request(writes=(Put(b"filler", FILLER),)), deadline_ms=2_000)
    await kv.close()

    async def has_ended() -> bool:
        return member.has_ended

    await field.rig.until(has_ended, ENDED_S_MAX)
    yield
    filler.unlink()
    await asyncio.to_thread(member.kill)
    await asyncio.to_thread(member.start)


@contextmanager
def disk_of(folder: Path, size_bytes: int = DISK_BYTES) -> Iterator[Path | None]:
    """*folder* as a small file system of its own, if this process may make one."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    folder.mkdir(parents=True, exist_ok=True)
    flags = ("-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder))
    is_made = bool(mount and umount) and _ran(str(mount), *flags)
    try:
        yield folder if is_made else None
    finally:
        if is_made:
            _ran(str(umount), str(folder))


def _ran(*argv: str) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


FAULTS: dict[str, Fault] = {
    "metasrv-killed": metasrv_killed,
    "metasrv-stopped": metasrv_stopped,
    "datanode-killed": datanode_killed,
    "datanode-stopped": datanode_stopped,
    "etcd-leader-killed": etcd_leader_killed,
    "etcd-follower-killed": etcd_follower_killed,
    "etcd-leader-frozen": etcd_leader_frozen,
    "etcd-leader-isolated": etcd_leader_isolated,
    "etcd-no-space": etcd_no_space,
    "etcd-slow-disk": etcd_slow_disk,
    "etcd-disk-full": etcd_disk_full,
}
NEEDS_MORE = {"etcd-slow-disk", "etcd-disk-full"}
"""Not everybody may do these."""
