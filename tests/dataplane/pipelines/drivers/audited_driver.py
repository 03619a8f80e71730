"""The driver as it is, in a process that notes every path its own Python opens or lists.

`python -m tests.dataplane.pipelines.drivers.audited_driver NOTES [driver's arguments]`. Executors
are processes of their own, started by the JVM, so nothing of theirs is noted.
"""

import os
import sys

NOTED = frozenset({"open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.mkdir"})


def main() -> int:
    notes = os.open(sys.argv.pop(1), os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(event: str, facts: tuple[object, ...]) -> None:
        if event in NOTED and isinstance(facts[0], str):
            os.write(notes, f"{facts[0]}\n".encode())

    sys.addaudithook(note)
    from dataplane.pipelines.driver import main as run_driver

    return run_driver()


if __name__ == "__main__":
    sys.exit(main())
