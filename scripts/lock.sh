#!/bin/sh
# Write the locks from pyproject.toml: every version and hash, and no index URL or host name.
set -eu
cd "$(dirname "$0")/.."
compile() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header "$@"
}
compile --group pyproject.toml:build -o requirements-build.lock
compile --extra demo pyproject.toml -o requirements.lock
compile --extra demo --extra dev -c requirements.lock pyproject.toml \
    -o requirements-dev.lock
