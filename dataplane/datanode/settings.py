"""`python -m dataplane.datanode.settings [FILE]`: what a datanode is told here, as JSON."""

import os
import sys
from pathlib import Path

from dataplane.datanode.config import DatanodeConfig
from metasrv_base.settings_list import as_json

if __name__ == "__main__":
    toml = Path(sys.argv[1]) if sys.argv[1:] else None
    print(as_json(DatanodeConfig.effective_settings(os.environ, toml)))
