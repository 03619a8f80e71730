"""Batches that look at more keys than one transaction compares, and write few."""

from typing import Any

from keys.store.kv import TXN_OPS_MAX
from tests.metasrv.api.batch_requests import batch, create, drop, names
from tests.metasrv.api.rig import leader


async def test_given_more_compares_than_a_transaction_has_then_the_batch_goes_in_parts() -> None:
    """Each miss compares a name, and few keys are written."""
    misses = [drop(f"none{number}", if_exists=True) for number in range(TXN_OPS_MAX)]
    async with leader() as one:
        before = one.version
        done = await batch(one, *misses, create("t"))
        nothing = await batch(one, *misses)

        assert (done.status_code, done.json()["applied"]) == (200, [False] * len(misses) + [True])
        assert set(await names(one)) == {"t"}
        assert (nothing.status_code, any(nothing.json()["applied"])) == (200, False)
        assert one.version == before + 1


async def test_given_many_users_of_a_placement_then_a_batch_alters_its_profiles() -> None:
    hot, cold = ({"name": name, "engine": "lsm"} for name in ("hot", "cold"))
    made = [{"create_placement": {"name": "fast", "storage_profiles": [hot, cold]}}]
    tables = [create(f"t{number}", placement="fast") for number in range(TXN_OPS_MAX)]

    def alter(*profiles: dict[str, Any]) -> dict[str, Any]:
        return {"alter_placement": {"placement": "fast", "storage_profiles": list(profiles)}}

    async with leader() as one:
        await batch(one, *made, *tables)
        refused = await batch(one, alter(cold))
        done = await batch(one, alter(hot))

        assert (refused.status_code, refused.json()["code"]) == (409, "object-in-use")
        assert (done.status_code, done.json()["applied"]) == (200, [True])
