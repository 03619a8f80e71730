"""An etcd that a test may kill or stop; the shared one is in tests/conftest.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.etcd.process import EtcdProcess


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    """For one test."""
    process = EtcdProcess(tmp_path)
    process.start()
    yield process
    process.kill()
