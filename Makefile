# Needs only make and Python 3.11 or 3.12; everything else comes from requirements.lock into .venv.

.DEFAULT_GOAL := help
.PHONY: help setup run test test-extras check docs results lock clean bench bench-peers
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-lock
READY := $(VENV)/.installed-euda
WORKERS ?= 2
UV ?= uv

# The first of these that runs and really is 3.11 or 3.12 (a pyenv shim may exist and yet not run).
PYTHON ?=
CANDIDATES := $(or $(PYTHON),python3.12 python3.11 python3)
SUITABLE := import ensurepip, sys, venv; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))

help:
	@echo 'make setup   create .venv with euda in it (PYTHON=... chooses the interpreter)'
	@echo 'make run     train the reacher until it hits its target, then show its learning curve and a video (some minutes)'
	@echo 'make test    all tests (WORKERS=2)'
	@echo 'make test-extras   tests of what needs more than the lock: Stable-Baselines3, SBX, TorchRL, Minari, Ray, Chromium (in .venv-extras)'
	@echo 'make results   rebuild the figures, pages and tables of results/ from the raw data there'
	@echo 'make check   lint, format and types'
	@echo 'make docs    the documentation as a site, in build/docs'
	@echo 'make lock    recompute requirements.lock from pyproject.toml (needs uv; LOCK_FLAGS=--upgrade for newer versions)'
	@echo 'make bench   training speed beside other programs (make bench-peers installs those) and the machine'
	@echo 'make clean   remove .venv and caches'

setup: $(READY)

$(INSTALLED): requirements.lock
	@python=; \
	for candidate in $(CANDIDATES); do \
	  if "$$candidate" -c '$(SUITABLE)' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo 'euda needs Python 3.11 or 3.12 with its venv module, and none of these is one: $(CANDIDATES). Install one, or name it: make setup PYTHON=/path/to/python3.12' >&2; \
	  exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$($$python --version) (some minutes the first time)"; \
	"$$python" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement requirements.lock
	@touch $@

$(READY): $(INSTALLED) pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

run: setup
	$(BIN)/euda demo

test: setup
	JAX_PLATFORMS=cpu $(BIN)/pytest -q -n $(WORKERS)

# PyTorch is installed exactly so, and first: a plain `torch` would bring gigabytes of CUDA packages along. The rest may
# add to what the lock has installed, but not change it: its versions are the constraints.
# The report's page is tested in Debian's chromium; Playwright only drives it and downloads no browser.
EXTRAS := 'stable-baselines3==2.9.2' 'sbx-rl==0.28.0' 'torchrl==0.14.1' 'tensordict==0.14.3' 'minari==0.5.4' 'h5py>=3.11,<4' \
  'ray>=2.40,<3' 'playwright>=1.50,<2'

test-extras:
	@$(MAKE) --no-print-directory setup VENV=.venv-extras
	@sed -n 's/^\([a-z0-9-]*==[^\]*\) \\$$/\1/p' requirements.lock > .venv-extras/constraints.txt
	@.venv-extras/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-extras/constraints.txt torch==2.13.0
	@.venv-extras/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-extras/constraints.txt torch==2.13.0 $(EXTRAS)
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } >/dev/null
	JAX_PLATFORMS=cpu .venv-extras/bin/pytest -q tests_extras

# The other programs of benchmarks/training.py, apart from .venv because they need PyTorch.
bench-peers: setup
	$(BIN)/python -m venv --clear build/peers
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 \
	  stable-baselines3 sbx-rl flax optax array-api-compat tyro 'mujoco>=3.17,<4' 'dm_control>=1.0.50,<2' 'gymnasium[mujoco]>=1.2,<2'

bench: setup
	$(BIN)/python benchmarks/training.py

results: setup
	$(BIN)/python results/build.py

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

docs: setup
	JAX_PLATFORMS=cpu $(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going -d build/doctrees docs build/docs
	@echo 'open build/docs/index.html'

lock:
	$(UV) pip compile pyproject.toml --group dev --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --no-config --quiet $(LOCK_FLAGS) --output-file requirements.lock

clean:
	rm -rf $(VENV) .venv-extras .pytest_cache .ruff_cache .hypothesis build dist
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
