"""`python -m dataplane.datanode.settings`: what a datanode can be told, as JSON for programs."""

from base.settings_list import as_json, settings_of
from dataplane.datanode.config import ENV_PREFIX, DatanodeConfig

if __name__ == "__main__":
    print(as_json(settings_of(DatanodeConfig, ENV_PREFIX)))
