"""Settings that a node follows by the version in each answer to a heartbeat."""

from dataclasses import dataclass, field

from dataplane.datanode.copies.transfer_rate import TransferRate
from dataplane.datanode.membership.followed_settings import FollowedSettings
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from metasrv.settings.tunables import DEFAULTS
from metasrv_base.errors import Unavailable
from metasrv_base.wire.api.cluster import SettingList
from metasrv_base.wire.node.nodes import SettingBody
from tests.fakes.clock import FakeClock

NAME = "fetch_bytes_per_s"


@dataclass
class StoredValue:
    """A source with one setting."""

    value: int | None = None
    is_down: bool = False
    reads: int = 0
    seen: list[int | None] = field(default_factory=list)

    async def settings(self) -> SettingList:
        self.reads += 1
        if self.is_down:
            raise Unavailable
        body = SettingBody(
            name=NAME,
            value=self.value,
            version=1,
            default=None,
            unit="bytes per second",
            meaning="",
            changed_by=None,
            changed_at=None,
        )
        other = body.model_copy(update={"name": "of_a_newer_version"})
        return SettingList(settings=(other, body))


def followed(source: StoredValue) -> tuple[FollowedSettings, Membership]:
    membership = Membership(NodeIdentity("dn-1", "i1", "http://n", "z", "/n"), "c")
    appliers = {NAME: source.seen.append}
    return FollowedSettings(membership, source, FakeClock(), appliers), membership


def test_given_what_nodes_follow_then_operators_can_set_it() -> None:
    assert NAME in type(DEFAULTS).model_fields


async def test_given_a_version_that_has_not_moved_when_followed_then_nothing_is_read() -> None:
    source = StoredValue()
    settings, membership = followed(source)

    await settings.follow()
    membership.settings_version = 1
    await settings.follow()
    await settings.follow()

    assert (source.reads, source.seen) == (1, [None])


async def test_given_a_value_that_changes_when_followed_then_it_is_applied_and_taken_back() -> None:
    source = StoredValue()
    settings, membership = followed(source)

    for version, value in ((1, 5), (2, None)):
        membership.settings_version, source.value = version, value
        await settings.follow()

    assert source.seen == [5, None]


async def test_given_no_answer_when_followed_then_it_is_asked_again() -> None:
    source = StoredValue(value=5, is_down=True)
    settings, membership = followed(source)
    membership.settings_version = 1

    await settings.follow()
    assert source.seen == []
    source.is_down = False
    await settings.follow()

    assert (source.reads, source.seen) == (2, [5])


async def test_given_a_rate_when_adjusted_then_pieces_wait_by_it_and_then_as_at_the_start() -> None:
    clock = FakeClock()
    rate = TransferRate(clock, 2_000_000)

    async def taken_ms() -> int:
        """The time that the second of two pieces of 200,000 bytes waits."""
        clock.advance(60_000)
        await rate.spend(200_000)
        begun = clock.mono_ms()
        await rate.spend(200_000)
        return clock.mono_ms() - begun

    assert await taken_ms() == 100
    rate.adjust(200_000)
    assert await taken_ms() == 1_000
    rate.adjust(0)
    assert await taken_ms() == 0
    rate.adjust(None)
    assert await taken_ms() == 100
