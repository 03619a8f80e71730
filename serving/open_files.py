"""The process's limit of open files."""

import resource


def raise_open_files() -> int:
    """Raises the soft limit to the hard one, and returns it. Connections, logs and reads each take
    a descriptor; the soft limit is low for the sake of programs that use select(2)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
