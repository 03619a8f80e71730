"""Planted bugs of schema leases: a step that goes on too early finds each within some runs."""

from dataclasses import dataclass

import pytest

from keys.model.transitions import Went
from metasrv.holders.holder_registry import HolderEntry, HolderRegistry, Wait
from metasrv_base.wire.frontend.holders import AcknowledgeRequest
from tests.metasrv.holders.schedule import Parts, SimHolder, schedule

pytestmark = pytest.mark.crash
RUNS = 40


class EndsEarly(HolderRegistry):
    """A registration that ends when the lease would, had nobody taken time to tell of it."""

    def _free_at(self, now_ms: int) -> int:
        return now_ms + self.lease_ms // 2


class WithoutQuiet(HolderRegistry):
    """A new leader that takes what it has not granted for not granted."""

    @property
    def quiet_until_ms(self) -> int:
        return self.elected_at_ms


class WithoutPins(HolderRegistry):
    """A holder that knows the new version counts as one that uses it."""

    def acknowledged(self, request: AcknowledgeRequest, now_ms: int) -> bool:
        return super().acknowledged(request.model_copy(update={"pinned": ()}), now_ms)


class AsTheyCome(HolderRegistry):
    """Acknowledgements are heard in the order in which they arrive."""

    def acknowledged(self, request: AcknowledgeRequest, now_ms: int) -> bool:
        entry = self._heard(request.holder_id, request.incarnation)
        entry.sequence = -1
        newest = max(request.version, entry.have or 0)
        return super().acknowledged(request.model_copy(update={"version": newest}), now_ms)


class UnknownIsNone(HolderRegistry):
    """A holder that this leader has not heard counts as one that has nothing to tell."""

    def begin(self, wait: Wait) -> None:
        super().begin(wait)
        for entry in self.entries():
            if entry.have is None:
                self._went(wait, entry.holder.holder_id, Went.FOLLOWED)


class PinAsOfNow(HolderRegistry):
    """A pin lets a step pass that waits for the version after it."""

    def _look(self, entry: HolderEntry) -> None:
        one_later = {
            table: pin.model_copy(update={"schema_version": pin.schema_version + 1})
            for table, pin in entry.pinned.items()
        }
        entry.pinned = one_later
        super()._look(entry)


@dataclass(eq=False)
class FromReceipt(SimHolder):
    """A holder that counts its lease from when the answer came."""

    def lease_from(self, sent: float) -> float:
        return self.now()


@dataclass(eq=False)
class NeverStops(SimHolder):
    """A holder that serves on whatever its clock says."""

    @property
    def serves(self) -> bool:
        return self.serves_until > 0


@dataclass(eq=False)
class LetsGo(SimHolder):
    """A holder that lets go of the pins of transactions that still run."""

    def pins(self) -> tuple[()]:
        return ()


def test_given_no_bug_then_no_step_goes_on_while_an_older_version_is_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [schedule(Parts(), seed) for seed in range(RUNS)]

    assert [run.found for run in runs if run.found] == []
    steps = sum(run.steps for run in runs)
    assert steps > 5 * RUNS, "steps go on at all"
    with capsys.disabled():
        print(f"\n{RUNS} schedules, {steps} steps of schema changes", end="")


@pytest.mark.parametrize(
    ("bug", "parts"),
    [
        ("holder's registration expires early", Parts(book=EndsEarly)),
        ("wait skipped after an election", Parts(book=WithoutQuiet)),
        ("pin not waited for", Parts(book=WithoutPins)),
        ("pin waited for one version too short", Parts(book=PinAsOfNow)),
        ("acknowledgements heard out of order", Parts(book=AsTheyCome)),
        ("holder at an unknown version not waited for", Parts(book=UnknownIsNone)),
        ("pin let go under a running transaction", Parts(holder=LetsGo)),
        ("schema lease counted from receipt", Parts(holder=FromReceipt)),
        ("holder does not stop by its own clock", Parts(holder=NeverStops)),
    ],
)
def test_given_a_planted_bug_then_a_step_goes_on_too_early(
    bug: str, parts: Parts, capsys: pytest.CaptureFixture[str]
) -> None:
    found = next((run for seed in range(RUNS) if (run := _of(parts, seed))[1]), None)

    assert found is not None
    with capsys.disabled():
        print(f"\n{bug}: run {found[0] + 1}: {found[1]}", end="")


def _of(parts: Parts, seed: int) -> tuple[int, str | None]:
    return seed, schedule(parts, seed).found
