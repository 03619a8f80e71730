"""`python -m dataplane.frontend.settings [FILE]`: what a frontend is told here, as JSON."""

import os
import sys
from pathlib import Path

from dataplane.frontend.config import FrontendConfig
from metasrv_base.settings_list import as_json

if __name__ == "__main__":
    toml = Path(sys.argv[1]) if sys.argv[1:] else None
    print(as_json(FrontendConfig.effective_settings(os.environ, toml)))
