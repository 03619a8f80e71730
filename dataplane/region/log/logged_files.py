"""Files of a job that a region takes by a CHANGE record of its log: entries of an index, or rows.

The record names them as they are in the root of the leader that has logged it. Another root has
them under the names of `copied_names.py`, so the same record leads each copy to the same rows.
"""

from pydantic import BaseModel, ConfigDict

from dataplane.region.manifests.copied_names import copied_name
from dataplane.region.manifests.manifest import FileEntry


class LoggedFiles(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    """The name by which manifests remember that they were taken (`Manifest.adopted`)."""
    root: str
    """The root of the leader that has logged them, to which their names are relative."""
    files: tuple[FileEntry, ...]

    def entries_in(self, root: str) -> tuple[FileEntry, ...]:
        """The files as the manifest of a copy in that root names them."""
        if root == self.root:
            return self.files
        return tuple(
            entry.model_copy(update={"name": copied_name(self.root, entry)}) for entry in self.files
        )

    def names_in(self, root: str) -> frozenset[str]:
        """Their names, relative to that root."""
        return frozenset(entry.name for entry in self.entries_in(root))
