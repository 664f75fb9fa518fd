# Needs only make and Python 3.11, 3.12 or 3.13; everything else comes from requirements.lock into .venv.

.DEFAULT_GOAL := help
.PHONY: help setup run quick test test-extras test-mjx check docs results lock clean bench bench-peers bench-before
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-lock
READY := $(VENV)/.installed-euda
WORKERS ?= 2
UV ?= uv

# The first of these that runs and really is one of the three (a pyenv shim may exist and yet not run).
PYTHON ?=
CANDIDATES := $(or $(PYTHON),python3.12 python3.11 python3.13 python3)
SUITABLE := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))

help:
	@echo 'make setup   create .venv with euda in it (PYTHON=... chooses the interpreter)'
	@echo 'make run     train a reacher without and with symmetry, then show both learning curves and films (some minutes)'
	@echo 'make quick   the tests that take less than a minute in all, for while you work'
	@echo 'make test    all tests (WORKERS=2)'
	@echo 'make test-extras   tests of what needs more than the lock: Stable-Baselines3, SBX, TorchRL, Minari, Ray, ONNX, Chromium (in .venv-extras)'
	@echo 'make test-mjx   tests inside MJX, MuJoCo Playground and Brax (in .venv-mjx)'
	@echo 'make results   rebuild the figures, pages and tables of results/ from the raw data there'
	@echo 'make check   lint, format and types'
	@echo 'make docs    the documentation as a site, in build/docs'
	@echo 'make lock    recompute requirements.lock from pyproject.toml (needs uv; LOCK_FLAGS=--upgrade for newer versions)'
	@echo 'make bench   training speed beside other programs (make bench-peers installs those) and the machine'
	@echo 'make bench-before BEFORE=REV   training speed beside an older commit, in turns (three minutes)'
	@echo 'make clean   remove .venv and caches'

setup: $(READY)

# The lock is complete, as a test says, so there is nothing to resolve.
$(INSTALLED): requirements.lock
	@python=; \
	for candidate in $(CANDIDATES); do \
	  if "$$candidate" -c '$(SUITABLE)' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo 'euda needs Python 3.11, 3.12 or 3.13 with its venv module, and none of these is one: $(CANDIDATES). Install one, or name it: make setup PYTHON=/path/to/python3.12' >&2; \
	  exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$($$python --version) (some minutes the first time)"; \
	"$$python" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --requirement requirements.lock
	@touch $@

$(READY): $(INSTALLED) pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

run: setup
	$(BIN)/euda demo

# Bytecode is kept even where the environment forbids it: else every process that tests start compiles euda anew, and every
# one of pytest its plugins too. `make clean` removes it.
PYTEST := JAX_PLATFORMS=cpu PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -q -n $(WORKERS)

quick: setup
	$(PYTEST) -m 'not slow'

test: setup
	$(PYTEST)

# Extras are tested in environments on top of .venv, which saves installing the lock again (two minutes): what they
# install themselves comes first, everything else is that of .venv. They may add to what the lock has, but not change it.
ON_TOP := .venv-extras/.on-top .venv-mjx/.on-top
$(ON_TOP): $(INSTALLED) | $(READY)
	@echo 'Setting up $(@D) on top of $(VENV)'
	@$(BIN)/python -m venv --clear $(@D)
	@below=$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])'); \
	inside=$$($(@D)/bin/python -c 'import site; print(site.getsitepackages()[0])'); \
	echo "import site; site.addsitedir('$$below')" > "$$inside/on-top.pth"
	@sed -n 's/^\([a-z0-9-]*==[^\]*\) \\$$/\1/p' requirements.lock > $(@D)/lock.txt
	@touch $@

INSTALL := -m pip install --quiet --disable-pip-version-check

# PyTorch is installed exactly so, and first: a plain `torch` would bring gigabytes of CUDA packages along. Two packages
# that viser wants older may differ from the lock.
# The report's page is tested in Debian's chromium; Playwright only drives it and downloads no browser.
EXTRAS := 'stable-baselines3==2.9.2' 'sbx-rl==0.28.0' 'torchrl==0.14.1' 'tensordict==0.14.3' 'minari==0.5.4' 'h5py>=3.11,<4' \
  'rsl-rl-lib==5.4.2' 'ray>=2.40,<3' 'playwright>=1.50,<2' 'onnx>=1.17,<2' 'onnxruntime>=1.20,<2' 'viser>=1.1,<2'

TORCH := 'torch==2.13.0'

# What is installed depends on the versions named here and on nothing else in this file, so they are written to a file
# that changes only if they do, and a stamp depends on that: a second run installs nothing.
.venv-extras/.wanted: WANTED = $(TORCH) $(EXTRAS)
.venv-mjx/.wanted: WANTED = $(MJX)
.venv-extras/.wanted .venv-mjx/.wanted: %/.wanted: %/.on-top FORCE
	@printf '%s\n' $(WANTED) | cmp -s - $@ || printf '%s\n' $(WANTED) > $@
FORCE:

.venv-extras/.installed: .venv-extras/.wanted
	@grep -v '^rich==\|^websockets==' $(@D)/lock.txt > $(@D)/constraints.txt
	@$(@D)/bin/python $(INSTALL) --constraint $(@D)/constraints.txt $(TORCH)
	@$(@D)/bin/python $(INSTALL) --constraint $(@D)/constraints.txt $(TORCH) $(EXTRAS)
	@touch $@

test-extras: .venv-extras/.installed
	@.ci/system-packages chromium
	JAX_PLATFORMS=cpu $(<D)/bin/python -m pytest -q tests_extras

# Simulators on JAX, apart from the other extras: Brax trains with a JAX below 0.10. MuJoCo itself is there a second time,
# because MJX is a part of that package.
MJX := 'jax==0.9.2' 'jaxlib==0.9.2' 'mujoco-mjx==3.17.0' 'playground==0.2.0' 'brax==0.14.2'

.venv-mjx/.installed: .venv-mjx/.wanted
	@grep -v '^jax==\|^jaxlib==' $(@D)/lock.txt > $(@D)/constraints.txt
	@$(@D)/bin/python $(INSTALL) --constraint $(@D)/constraints.txt --no-deps --ignore-installed mujoco
	@$(@D)/bin/python $(INSTALL) --constraint $(@D)/constraints.txt $(MJX)
	@touch $@

test-mjx: .venv-mjx/.installed
	JAX_PLATFORMS=cpu $(<D)/bin/python -m pytest -q -n $(WORKERS) tests_mjx

# The other programs of benchmarks/training.py and time_to_return.py, apart from .venv because they need PyTorch.
bench-peers: setup
	$(BIN)/python -m venv --clear build/peers
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 \
	  stable-baselines3 sbx-rl flax optax array-api-compat tyro 'mujoco>=3.17,<4' 'dm_control>=1.0.50,<2' 'gymnasium[mujoco]>=1.2,<2'

bench: setup
	$(BIN)/python benchmarks/training.py

# Is training slower than at an older commit? Both run in turns on the first core that this process may use, about
# three minutes: taskset -c 1 make bench-before BEFORE=05507ee
BEFORE ?= 05507ee
bench-before: setup
	rm -rf build/before
	git clone --quiet --shared . build/before
	git -C build/before checkout --quiet $(BEFORE)
	$(BIN)/python benchmarks/training.py --before build/before --tasks cheetah_run humanoid_run

results: setup
	$(BIN)/python results/build.py

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

docs: setup
	JAX_PLATFORMS=cpu $(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going -d build/doctrees docs build/docs
	@echo 'open build/docs/index.html'

# dm_control asks for labmaze, which has no wheel for Python 3.13; only dm_control's own mazes import it, and euda has none.
OVERRIDE := labmaze>=1.0.6 ; python_version < '3.13'

lock:
	echo "$(OVERRIDE)" | $(UV) pip compile pyproject.toml --group dev --universal --python-version 3.11 --fork-strategy fewest \
	  --override /dev/stdin --generate-hashes --no-emit-index-url --no-header --no-annotate --no-config --quiet $(LOCK_FLAGS) \
	  --output-file requirements.lock

clean:
	rm -rf $(VENV) .venv-extras .venv-mjx .pytest_cache .ruff_cache .hypothesis build dist
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
