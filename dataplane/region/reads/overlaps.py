"""Files that a scan has open together: those with keys in common.

Of the files of one run a scan opens each when the one before it is through.
"""

from collections.abc import Callable, Iterable

from dataplane.region.files.file_reader import FileReader


def most_together(
    files: Iterable[FileReader], size_of: Callable[[FileReader], int] = lambda _file: 1
) -> int:
    """The greatest sum of sizes of files that have a key in common; without *size_of*, how many."""
    ends: list[tuple[bytes, bool, int]] = []
    for file in files:
        size = size_of(file)
        ends += [(file.min_key, False, size), (file.max_key, True, size)]
    most = together = 0
    for _, is_last, size in sorted(ends):
        together += -size if is_last else size
        most = max(most, together)
    return most
