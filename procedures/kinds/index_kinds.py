"""create_index and drop_index: an index goes the way of every element, with rows to fill it.

The steps are those of an alter (procedures/kinds/alter_table.py), with one more before the brink is
crossed. An index is done when it is public: whoever is answered may read by it (G28).
"""

from dataclasses import replace

from procedures.kinds.alter_table import ALTER_TABLE, advance, begin, commit, fill, finish, go_back
from procedures.machine import Step

CREATE_INDEX = replace(
    ALTER_TABLE,
    name="create_index",
    steps={
        "begin": Step(begin, to=frozenset({"advance"})),
        "advance": Step(advance, to=frozenset({"advance", "fill"}), undo=go_back, waits=True),
        "fill": Step(fill, to=frozenset({"commit"})),
        "commit": Step(commit, to=frozenset({"finish"})),
        "finish": Step(finish, waits=True),
    },
    success=201,
)
DROP_INDEX = replace(
    ALTER_TABLE,
    name="drop_index",
    steps={
        "begin": Step(begin, to=frozenset({"advance"})),
        "advance": Step(advance, to=frozenset({"advance", "commit"}), undo=go_back, waits=True),
        "commit": Step(commit, to=frozenset({"finish"})),
        "finish": Step(finish, to=frozenset({"finish"}), ends=True, waits=True),
    },
    success=204,
)
