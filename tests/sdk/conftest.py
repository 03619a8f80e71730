"""Three real datanodes for all tests of the SDK that need rows on disk."""

from collections.abc import Iterator

import pytest

from tests.sdk.cluster import RealNodes, real_nodes


@pytest.fixture
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNodes]:
    with real_nodes(tmp_path_factory.mktemp("nodes"), 3) as found:
        yield found
