# Every target sets up what is missing first (.venv and .run), and is the same as
# `python3 scripts/bootstrap.py TARGET`.
PYTHON ?= python3
ARGS ?=

.PHONY: setup demo test test-fast test-long check bench chaos search sim kills generate lock clean

demo: ; @exec $(PYTHON) scripts/bootstrap.py demo $(ARGS)
test: ; @exec $(PYTHON) scripts/bootstrap.py test $(ARGS)
test-long: ; @exec $(PYTHON) scripts/bootstrap.py test-long
test-fast: ; @exec $(PYTHON) scripts/bootstrap.py test-fast
check: ; @exec $(PYTHON) scripts/bootstrap.py check
setup: ; @exec $(PYTHON) scripts/bootstrap.py setup

# The long forms of tests/process: leaders, nodes, Spark and etcd's members killed, stopped, slow and
# full, CYCLES times.
CYCLES ?= 1
chaos: ; @exec $(PYTHON) scripts/bootstrap.py chaos --cycles $(CYCLES) $(ARGS)

# The differential test of the two stores, 10,000 new sequences; some twenty minutes.
search: ; @exec $(PYTHON) scripts/bootstrap.py search $(ARGS)

# The simulation: so many seeds, from FIRST on; a few seconds each, with ARGS=--short a quarter of it.
SEEDS ?= 100
FIRST ?= 1
sim: ; @exec $(PYTHON) scripts/bootstrap.py sim --seeds $(SEEDS) --first $(FIRST) $(ARGS)

# Cells of the crash enumeration on a real etcd, with processes killed: PERCENT of them, by SEED.
PERCENT ?= 2
SEED ?= 2
kills: ; @PERCENT=$(PERCENT) SEED=$(SEED) exec $(PYTHON) scripts/bootstrap.py kills $(ARGS)

# What it costs, in ratios; minutes, and not in CI.
bench: ; @exec $(PYTHON) scripts/bootstrap.py bench

# Files made from code.
generate: ; @$(PYTHON) scripts/bootstrap.py generate

# The locks, after a change of pyproject.toml; needs uv.
lock: ; @sh scripts/lock.sh

clean: ; rm -rf .venv .run
