# make setup | test | train | bench | minecraft      Python, make and the package registries are all that is needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUN ?= runs/fast-0
AS_ROOT := $(shell test "$$(id -u)" = 0 || echo sudo -n)
BENCH_VENV := .venv-bench
BENCH_STAMP := $(BENCH_VENV)/.installed
BRIDGE := src/skillstack/worlds/minecraft/bridge
BRIDGE_STAMP := $(BRIDGE)/node_modules/.installed

# One thread in each process: threads that fight over cores are several times slower.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup browser test lint types format train bench minecraft clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 10

setup: $(STAMP)  ## create .venv and install everything with exact versions

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Python 3.11 to 3.13 is needed; set PYTHON=...")'
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

browser:  ## Debian's Chromium, for the tests of the viewer's page, where it is missing
	@command -v chromium >/dev/null || { $(AS_ROOT) apt-get update -qq && \
		$(AS_ROOT) apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } || \
		echo "Chromium cannot be installed here: the tests of the page will say so, and fail in CI."

test: setup browser lint types  ## lint, types, and all tests with coverage
	$(BIN)/python -m pytest

lint: setup  ## ruff: lint and format, checked only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup  ## mypy, strict, on src
	$(BIN)/mypy

format: setup  ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

train: setup  ## the main job: learn the ladder of skills, or go on with it
	if test -e $(RUN)/checkpoints; then $(BIN)/skillstack train --resume $(RUN); else $(BIN)/skillstack train --run $(RUN); fi

bench: setup $(BENCH_STAMP)  ## speed of our world and of our learner, and of what one would take instead
	$(BIN)/python benchmarks/worlds.py --peers $(BENCH_VENV)/bin/python --json results/worlds.json
	$(BIN)/python benchmarks/learning.py --peer-python $(BENCH_VENV)/bin/python --json results/learning.json

$(BENCH_STAMP): pyproject.toml benchmarks/constraints.txt
	$(BENCH_VENV)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint benchmarks/constraints.txt \
		$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["bench"])')
	touch $@

minecraft: setup $(BRIDGE_STAMP)  ## what the world minecraft needs: packages from npm, and Debian's EGL if it is missing
	$(BIN)/python -c 'from skillstack.worlds.minecraft.renderer import open_context; open_context()' 2>/dev/null || \
		{ $(AS_ROOT) apt-get update -qq && $(AS_ROOT) apt-get install -y -qq --no-install-recommends libegl1 libgl1 libgl1-mesa-dri; }

$(BRIDGE_STAMP): $(BRIDGE)/package.json $(BRIDGE)/package-lock.json
	@command -v npm >/dev/null || { echo 'Node.js 18 or later, with npm, is needed: for example apt-get install nodejs npm' >&2; exit 2; }
	cd $(BRIDGE) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

clean:  ## remove what the targets made
	rm -rf $(VENV) $(BENCH_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage $(BRIDGE)/node_modules
