"""The picture of the rooms shows the imports of the code, and nothing else."""

from pathlib import Path

import pytest

from scripts.documents.references import PACKAGES
from scripts.documents.rooms import PAGE, imports_of, pages

ROOT = Path(__file__).parents[2]


def test_given_code_then_rooms_and_arrows_are_those_of_its_imports(tmp_path: Path) -> None:
    for path, text in {
        "metasrv_base/ids.py": "import json",
        "metasrv_base/wire/__init__.py": "",
        "metasrv_base/wire/nodes.py": "from metasrv_base.ids import a\n"
        "from metasrv_base.wire.orders import b",
        "metasrv_base/wire/orders.py": "import metasrv_base.ids",
        "keys/kv.py": "from metasrv_base.wire.nodes import c\nimport base_of_others.x",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    assert imports_of(tmp_path) == {
        "metasrv_base": frozenset(),
        "metasrv_base/wire": frozenset({"metasrv_base"}),
        "keys": frozenset({"metasrv_base/wire"}),
    }


@pytest.mark.slow
def test_given_this_checkout_then_every_room_is_on_the_page_and_every_arrow_is_drawn() -> None:
    page, rooms = pages()[PAGE], imports_of(ROOT)

    for room, others in rooms.items():
        assert f"| `{room}/` |" in page
        for other in others:
            if other.partition("/")[0] == room.partition("/")[0]:
                assert f"  {room.replace('/', '_')} --> {other.replace('/', '_')}\n" in page
    assert {room.partition("/")[0] for room in rooms} == set(PACKAGES)
