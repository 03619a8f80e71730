"""remove_orphans: puts a node's folders that no route names into quarantine, or deletes them there.

The folders are judged again, and the transaction that records the proofs compares the routes they
rest on; then the node is ordered. A deletion is another procedure than the one that put the folders
into quarantine, so nothing is held while the retention lasts (docs/decisions/0402).
"""

from collections.abc import Mapping

from pydantic import Field

from keys.commit.txn import Txn
from keys.model.records import Lock, Resource
from keys.value import StoredPart
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Conflict, Refused, Unavailable, Unknown
from metasrv_base.wire.node.orders import DeleteQuarantined, Order, QuarantineRoot
from metasrv_base.wire.problem.problems import KINDS as PROBLEMS
from procedures.context import Context
from procedures.locking.locks import exclusive, orphans_key
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.orphans.proofs import FoldersNamed, JudgedFolder, judge_folders
from procedures.steps.region_orders import UNNUMBERED

FOLDERS_MAX = 16
"""Folders of one procedure, each of another region: a node answers the repeat of the last order of
a region alone."""
TRIES_MAX = 8
"""Orders of a folder to a node that lives: some 40 s, within which a dead one is noticed."""
AGAIN = Backoff(first_ms=500, max_ms=15_000)


class OrphanFolder(StoredPart):
    """A folder that is to go."""

    root: str
    region_id: str
    at_ms: int | None = None
    """The time at which it came into quarantine; None: it is not there."""
    epoch: int = 0
    """Its epoch, and its highest fence, as it was judged."""
    fence_epoch: int = 0
    fence_opening: int = 0
    proof: str | None = None
    """The reason for which it is an orphan; None: it was not judged."""


class RemoveOrphans(ProcedureState):
    node: str
    deletes: bool
    """They are in quarantine, and are deleted. Else they are put there."""
    folders: tuple[OrphanFolder, ...]
    grace_ms: int
    """The least age of their fences, or the time for which they must have been in quarantine."""
    waiting: dict[str, str] = Field(default_factory=dict)
    """Folders that stay, with the reason."""
    at_ms: int = 0
    """The time at which they were judged."""


async def prove(state: RemoveOrphans, context: Context) -> Outcome[RemoveOrphans]:
    """Keeps the folders that are proved to be orphans; ends if there is none."""
    now_ms = context.ports.clock.wall_ms()
    due = {folder.root: folder for folder in state.folders if _is_due(state, folder, now_ms)}
    times = {root: folder.at_ms for root, folder in due.items() if folder.at_ms is not None}
    request = FoldersNamed(
        state.node,
        due.keys(),
        {int(folder.region_id) for folder in due.values()},
        times if state.deletes else None,
        state.grace_ms,
    )
    result = await judge_folders(context, request)
    proved = tuple(
        _proved(due[folder.item.root], folder)
        for folder in result.folders
        if folder.judgement.orphan is not None
    )
    waiting = {
        folder.item.root: "claimed" if (wait := folder.judgement.wait) is None else wait.value
        for folder in result.folders
        if folder.judgement.orphan is None
    }
    update = {"folders": proved, "waiting": waiting, "at_ms": now_ms}
    changed = state.model_copy(update=update)
    if not proved:
        return _over(changed, [])
    return Goto("order", changed, Txn.on(result.read))


def _is_due(state: RemoveOrphans, folder: OrphanFolder, now_ms: int) -> bool:
    if not state.deletes:
        return folder.at_ms is None
    return folder.at_ms is not None and now_ms - folder.at_ms >= state.grace_ms


def _proved(folder: OrphanFolder, judged_folder: JudgedFolder) -> OrphanFolder:
    judgement, item = judged_folder.judgement, judged_folder.item
    assert judgement.orphan is not None
    return folder.model_copy(
        update={
            "epoch": judgement.folder.epoch,
            "fence_epoch": item.fence_epoch,
            "fence_opening": item.fence_opening,
            "proof": judgement.orphan.value,
        }
    )


async def order(state: RemoveOrphans, context: Context) -> Outcome[RemoveOrphans]:
    """Orders the node. A folder stays if the node is gone, or will not do it.

    Where the node does not say that it has done it or will not, it is asked again, TRIES_MAX times
    in all, while it is alive. Then the folder is said to wait, although an order may be done yet:
    its proof stays true, and a later procedure proves it anew.
    """
    if state.node not in context.alive_nodes():
        return _over(state, [])
    undecided, kept = list(state.folders), dict[str, str]()
    for number in range(TRIES_MAX):
        if number:
            await _rest(state, context, number)
        if state.node not in context.alive_nodes():
            break
        orders = [_order_of(state, folder) for folder in undecided]
        try:
            results = await context.ports.nodes.send(state.node, orders, sender=context.sender)
        except (Unavailable, Unknown) as error:
            codes: list[str | None] = [error.code] * len(orders)
        else:
            codes = [None if result.error is None else result.error.code for result in results]
        answers = {folder.root: code for folder, code in zip(undecided, codes, strict=True)}
        kept = {root: code for root, code in {**kept, **answers}.items() if code is not None}
        undecided = [each for each in undecided if not _is_final(answers[each.root])]
        if not undecided:
            break
    done = [folder.root for folder in state.folders if folder.root not in kept]
    return _over(state.model_copy(update={"waiting": {**state.waiting, **kept}}), done)


async def _rest(state: RemoveOrphans, context: Context, tries: int) -> None:
    pause_ms = AGAIN.delay_ms(tries, context.ports.rng.random())
    with context.waiting_for("node", f"{state.node}, after {tries} tries", pause_ms):
        await context.live.rest(pause_ms)


def _is_final(code: str | None) -> bool:
    """Whether the node has carried out the order, or has decided against it: the folder is used, or
    not as it was judged."""
    error = None if code is None else PROBLEMS.get(code)
    return code is None or (error is not None and issubclass(error.error, Refused | Conflict))


def _order_of(state: RemoveOrphans, folder: OrphanFolder) -> Order:
    if folder.at_ms is not None:
        return DeleteQuarantined(
            number=UNNUMBERED,
            region_id=folder.region_id,
            epoch=folder.epoch,
            root=folder.root,
            at_ms=folder.at_ms,
        )
    return QuarantineRoot(
        number=UNNUMBERED,
        region_id=folder.region_id,
        epoch=folder.epoch,
        root=folder.root,
        fence_epoch=folder.fence_epoch,
        fence_opening=folder.fence_opening,
        at_ms=state.at_ms,
    )


def _over(state: RemoveOrphans, done: list[str]) -> Done[RemoveOrphans]:
    proofs: Mapping[str, str | None] = {folder.root: folder.proof for folder in state.folders}
    result = {
        "node": state.node,
        "deletes": state.deletes,
        "folders": {root: proofs[root] for root in done},
        "waiting": state.waiting,
    }
    return Done(state, result)


def locks(state: RemoveOrphans) -> tuple[Lock, ...]:
    """Returns a lock that keeps a second procedure from the node, and no lock of a table: a repair
    never waits for this."""
    return (exclusive(orphans_key(state.node)),)


def resource(state: RemoveOrphans) -> Resource:
    return Resource(type="node", id=state.node, name=state.node)


REMOVE_ORPHANS = Kind(
    name="remove_orphans",
    state=RemoveOrphans,
    steps={
        "prove": Step(prove, to=frozenset({"order"}), ends=True),
        "order": Step(order, waits=True),
    },
    no_return="prove",
    locks=locks,
    resource=resource,
    success=200,
    lane=AdmissionLane.REPAIR,
)
