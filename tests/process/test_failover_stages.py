"""Leader and Spark killed during a failover; every stage is in the long form, scripts/chaos.py."""

from pathlib import Path

import pytest

from tests.process.failover_stages import SPARK, blow_at
from tests.process.rig import running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


async def test_given_a_failover_when_leader_and_spark_are_killed_then_it_ends_in_one_good_copy(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, metasrvs=2) as rig:
        async with rig.client() as db:
            await db.tables.create(table_spec("t", regions=1))
        blow = await blow_at(rig, "t", "open", SPARK)
        agreement = await rig.agreement()

    print(blow)
    assert blow.wrong == ()
    assert agreement.wrong == []
