"""Names of the data files that a copy has fetched, in its own root. Pure.

A name is derived from what the file is: the root that it was made in, its name there, its length
and its checksums. So a file that is fetched again has the same name, and no two files share one.
"""

from hashlib import blake2b

from dataplane.region.format.names import ATTEMPTS
from dataplane.region.manifests.manifest import FileEntry

COPIED = f"{ATTEMPTS}/copied"
"""The folder of files that were fetched, relative to the root."""


def copied_name(source: str, entry: FileEntry) -> str:
    """The name of a data file in the root of a copy, which no other file has. *source*: the root
    of an entry that names none."""
    content = (entry.name, entry.bytes, entry.crc32, entry.footer_crc32)
    return f"{COPIED}/{digest(entry.root or source, *content)}.parquet"


def digest(*facts: object) -> str:
    """A text for facts, which no other facts have."""
    return blake2b("\n".join(map(str, facts)).encode(), digest_size=16).hexdigest()
