"""`python -m dataplane.datanode.settings [FILE]`: what a datanode is told here, as JSON."""

import os
import sys
from pathlib import Path

from base.settings_list import as_json, in_effect, settings_of, table_of
from dataplane.datanode.config import ENV_PREFIX, DatanodeConfig

if __name__ == "__main__":
    table = table_of(Path(sys.argv[1]) if sys.argv[1:] else None, "datanode")
    print(as_json(in_effect(settings_of(DatanodeConfig, ENV_PREFIX), table, os.environ)))
