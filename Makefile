# make          create .venv, then run the pipeline
# make full     the same with every model of the studies (config/full.yaml)
# make test     install the developers' tools, then run the tests
# make test-slow  run the tests that make test leaves out, such as most benchmarks at their smallest size
# make test-slurm  run the tests that start a Slurm cluster on this machine (needs root, Debian's Slurm)
# make test-triton  run the tests that need Triton, and no GPU
# make test-gpu  run the tests that need a GPU; those that compare times have it for themselves, afterwards
# make lint     check format, style and types
# make docs     build the documentation in site/; warnings are errors
# make reference  generate docs/reference and schemas/ from the models of the YAML files and from the
#               command line
# make figures  write the figures and tables of the documents from result files and recorded data
# make wheel    write the wheel and the archive of recorded sweeps into dist/
# make gpu      add PyCUDA to .venv, for measuring on a GPU
# make lock     write the lock files from pyproject.toml (newest versions: make lock LOCK_ARGS=--upgrade)
# make clean    remove .venv, site/ and caches; keep results/ and .snakemake/, which hold measurements
PYTHON ?= python3
CORES ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
# Many tests wait for processes that they started.
TEST_WORKERS ?= $(shell expr $(CORES) + 4)
# On one GPU, which one of them measures on at a time.
GPU_TEST_WORKERS ?= 6
WHEELS ?= $(wildcard ../shared/wheels)
UV_VERSION := 0.13.8
# Compiled once, for all who start Python afterwards; UV_COMPILE_BYTECODE=0: as it is imported.
export UV_COMPILE_BYTECODE := $(or $(UV_COMPILE_BYTECODE),1)
PYCUDA_VERSION := 2026.1

VENV := .venv
# Triton, and what is in $(VENV).
TRITON := $(VENV)/triton
BIN := $(VENV)/bin
ACTIVATE := PATH="$(CURDIR)/$(BIN):$$PATH"

# Installs a lock file with uv, in a third of pip's time; $(2): options of both. Falls back to pip if
# uv is missing or fails: uv ignores pip's configuration, such as a private mirror.
define install
	{ $(BIN)/python -m uv --version || $(BIN)/pip install -q uv==$(UV_VERSION); } >/dev/null 2>&1 \
	  && $(BIN)/python -m uv pip install -q --require-hashes --python $(BIN)/python $(2) -r $(1) \
	  || { echo "make: uv failed; using pip (slower)"; \
	       $(BIN)/pip install -q --require-hashes $(2) -r $(1); } \
	  || { echo "make: cannot install $(1) (see above): make needs PyPI, or PIP_INDEX_URL of a mirror, and space for caches (XDG_CACHE_HOME)"; exit 1; }
endef

# A clone that was moved or renamed, or whose interpreter is gone (an upgrade of the system).
ifneq ($(wildcard $(VENV)/.stamp-run),)
  ifneq ($(shell $(BIN)/python -c 'print("runs")' 2>&1),runs)
    $(info make: $(BIN)/python does not run any more; installing anew)
    $(shell rm -f $(VENV)/.stamp-*)
  else ifneq ($(shell cat $(VENV)/.place 2>/dev/null),$(CURDIR)/$(VENV))
    $(info make: adapting $(VENV) to this folder)
    $(shell $(BIN)/python .ci/environment.py $(VENV) >&2)
  endif
endif

.DELETE_ON_ERROR:
.PHONY: all full test test-slow test-slurm test-triton test-gpu lint docs reference figures wheel gpu lock clean

all: $(VENV)/.stamp-run
	$(ACTIVATE) snakemake --cores $(CORES)

full: $(VENV)/.stamp-run
	$(ACTIVATE) snakemake --cores $(CORES) --configfile config.yaml config/full.yaml

PARALLEL = -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

test: $(VENV)/.stamp-dev
	$(ACTIVATE) pytest $(PARALLEL) $(PYTEST_ARGS)

test-slow: $(VENV)/.stamp-dev
	$(ACTIVATE) pytest -m "slow and not gpu and not slurm" $(PARALLEL) $(PYTEST_ARGS)
	$(ACTIVATE) pytest -m "slow and slurm" tests/slurm $(PYTEST_ARGS)

test-slurm: $(VENV)/.stamp-dev
	$(ACTIVATE) pytest -m "slurm and not slow" tests/slurm $(PYTEST_ARGS)

test-triton: $(VENV)/.stamp-triton
	PATH="$(CURDIR)/$(TRITON)/bin:$(CURDIR)/$(BIN):$$PATH" \
	  python -m pytest -m "triton and not gpu and not slow" $(PARALLEL) $(PYTEST_ARGS) \
	  $$(grep -rl "mark\.triton" --include="test_*.py" tests kernels)

test-gpu: $(VENV)/.stamp-dev $(VENV)/.stamp-gpu
	$(ACTIVATE) pytest -m "gpu and not times" -n $(GPU_TEST_WORKERS) --dist loadfile $(PYTEST_ARGS)
	$(ACTIVATE) pytest -m "gpu and times" $(PYTEST_ARGS)

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy launchwise scripts kernels benchmarks docs/generator
	$(BIN)/snakefmt --check Snakefile workflow rules kernels
	$(ACTIVATE) snakemake --lint

docs: $(VENV)/.stamp-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

reference: $(VENV)/.stamp-run
	$(BIN)/python -m docs.generator

figures: $(VENV)/.stamp-run
	$(BIN)/python -m docs.generator.write_figures

wheel: $(VENV)/.stamp-dev
	$(BIN)/python -m hatchling build -t wheel -d dist
	$(BIN)/python -m launchwise.cli.project dist

gpu: $(VENV)/.stamp-gpu

# A .venv without this stamp is incomplete and is rebuilt.
$(VENV)/.stamp-run: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "launchwise needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 (PYTHON=$(PYTHON) is `$(PYTHON) --version 2>&1 | tail -n 1`)"; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	@echo "make: installing $<"
	@$(call install,$<)
	@$(BIN)/python .ci/environment.py $(VENV)
	@touch $@

$(VENV)/.stamp-dev: requirements-dev.lock $(VENV)/.stamp-run
	@echo "make: installing $<"
	@$(call install,$<)
	@touch $@

$(VENV)/.stamp-docs: requirements-docs.lock $(VENV)/.stamp-run
	@echo "make: installing $<"
	@$(call install,$<)
	@touch $@

# Apart: where Triton can be imported, other tests would compile its variants, too.
$(VENV)/.stamp-triton: requirements-triton.lock $(VENV)/.stamp-dev
	@echo "make: installing $<"
	@$(BIN)/python -m venv --clear --without-pip $(TRITON)
	@$(call install,$<,--prefix $(TRITON))
	@cd $(TRITON)/lib/python*/site-packages && \
	  printf '%s\n' ../../../../lib/python*/site-packages ../../../../.. >venv.pth
	@touch $@

# PyPI has no wheel of PyCUDA: pip uses one from $(WHEELS), or builds it with nvcc.
$(VENV)/.stamp-gpu: requirements-gpu.lock $(VENV)/.stamp-run
	@echo "make: installing $< and PyCUDA"
	@$(call install,$<)
	$(BIN)/pip install -q --no-deps $(if $(WHEELS),--find-links $(WHEELS)) pycuda==$(PYCUDA_VERSION)
	@touch $@

COMPILE = $(BIN)/python -m uv pip compile -q --universal --python-version 3.11 --generate-hashes \
  --custom-compile-command "make lock" $(LOCK_ARGS) pyproject.toml

lock: $(VENV)/.stamp-run
	$(BIN)/pip install -q uv==$(UV_VERSION)
	$(COMPILE) -o requirements.lock
	$(COMPILE) -c requirements.lock --extra dev -o requirements-dev.lock
	@# after the developers' tools, because one environment holds both
	$(COMPILE) -c requirements-dev.lock --extra docs -o requirements-docs.lock
	@# Triton needs no other package
	echo 'triton>=3.6' | $(subst pyproject.toml,-,$(COMPILE)) -o requirements-triton.lock
	@# the bindings of CUDA 13.0, which every CUDA 13 driver serves
	echo 'cuda-bindings==13.0.*' | $(COMPILE) -c - -c requirements.lock --extra gpu --no-emit-package pycuda -o requirements-gpu.lock

clean:
	rm -rf $(VENV) site build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
