# Two commands do everything: `make reproduce` runs the main job, `make test` the tests.
# Both create .venv on first use and need nothing but Python >= 3.11, a C compiler and make.

PYTHON ?= python3
VENV   := .venv
LOWEST := .venv-lowest
OTHERS := .venv-environments
DIST   := .venv-dist
ifeq ($(OS),Windows_NT)
  SCRIPTS := Scripts
else
  SCRIPTS := bin
endif
BIN    := $(VENV)/$(SCRIPTS)
# Stamp files: the library installed, its kernels built, the developer tools installed.
INSTALLED := $(VENV)/.installed
BUILT     := $(VENV)/.built
READY     := $(VENV)/.ready
KERNELS   := $(wildcard src/psconrl/kernels/*.[ch] $(addprefix src/psconrl/kernels/,*.py *.pxd */*.py */*.pxd))

# One BLAS thread: small linear systems are many times slower with more.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS      := 1
export MKL_NUM_THREADS      := 1

.PHONY: help reproduce style test test-all test-slow test-exact test-forgeries test-files test-sanitized test-lowest test-environments test-aarch64 coverage mutants bench docs check-board quick-board dist format constraints clean

help:
	@echo "make reproduce      the paper's figures and a page, short form: results/quick/"
	@echo "make test           style, types, tests: a part of the long ones, all of the rest"
	@echo "make test-all       style, types, all tests but the slowest"
	@echo "make test-slow      stress and search: tests that take minutes, other random examples at every run"
	@echo "make test-exact     new random models, each plan compared with rational arithmetic: CASES=2000 SEED=1 JOBS=2"
	@echo "make test-forgeries proofs that claim more than is true, each compared with an exact optimum: CASES=200 SEED=1"
	@echo "make test-files     new damaged files of every kind, read within limits of memory and time: CASES=20000 SEED=1 JOBS=2"
	@echo "make test-sanitized kernels that check every index, under the sanitizers of the compiler"
	@echo "make test-lowest    the tests with the oldest supported libraries"
	@echo "make test-environments  environments of other packages: mo-gymnasium, MiniGrid"
	@echo "make test-aarch64   the digests of runs on 64-bit ARM, under emulation (Debian)"
	@echo "make coverage       lines and branches that make test runs, without the compiled kernels: build/coverage/"
	@echo "make mutants        mutation testing: small faults in the source that the tests must detect"
	@echo "make bench          benchmarks; tables go to benchmarks/RESULTS.md by hand"
	@echo "make docs           the documentation site: site/index.html"
	@echo "make check-board    repeat a random tenth of the runs on the leaderboard: SHARE=0.1"
	@echo "make quick-board    run the leaderboard's short protocol, and write the quick submissions that the package ships"
	@echo "make dist           wheel and sdist in dist/, checked, and tested in a bare environment"
	@echo "make format         format the code with ruff"
	@echo "make constraints    write the versions in use to constraints.txt"

# Constraints are exported: only then do they also apply to the build dependencies.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
$(INSTALLED) $(READY): export PIP_CONSTRAINT := constraints.txt

# First the library and its plotting dependencies; the developer tools follow when a target needs them.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "psconrl needs Python >= 3.11; $(PYTHON) is older. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) tools/compiler.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet setuptools cython
	PSCONRL_BUILD=later $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[plots]'
	@touch $@

$(BUILT): $(INSTALLED) setup.py $(KERNELS)
	@echo "Building the kernels takes a minute or two the first time."
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

$(READY): $(BUILT)
	$(BIN)/python tools/requirements.py dev > $(VENV)/dev.txt
	$(BIN)/python -m pip install --quiet --requirement $(VENV)/dev.txt
	@touch $@

$(DIST)/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/$(SCRIPTS)/python -m pip install --quiet 'build>=1.2' 'twine>=6.1'
	@touch $@

$(LOWEST)/.ready: pyproject.toml tools/requirements.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) tools/requirements.py dev --lowest > $(LOWEST)/constraints.txt
	$(LOWEST)/$(SCRIPTS)/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt --editable '.[dev]'
	@touch $@

reproduce: $(BUILT)
	$(BIN)/psconrl reproduce --quick

# `test` leaves out tests marked `full` and cases of tests marked `part`: see CONTRIBUTING.md.
PYTEST := pytest -n auto --dist worksteal

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Types are checked beside the tests: mypy has one process, during which the other cores would be idle.
define STYLE_TYPES_AND_TESTS
$(BIN)/ruff check .
$(BIN)/ruff format --check .
@$(BIN)/mypy > $(VENV)/types.txt 2>&1 & types=$$!; \
  $(BIN)/$(PYTEST) $(1); tests=$$?; \
  wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests | types))
endef

test: $(READY)
	$(call STYLE_TYPES_AND_TESTS)

test-all: $(READY)
	$(call STYLE_TYPES_AND_TESTS,--full)

# Hypothesis tries other examples at every run, and many more of them.
test-slow: $(READY)
	$(BIN)/$(PYTEST) --full -m 'slow or hypothesis' --hypothesis-profile explore

# Models that were never planned before; failures are shrunk and written to tests/data/exact.
JOBS ?= 1
test-exact: $(READY)
	$(BIN)/python tests/explore_exact.py --jobs $(JOBS) $(if $(CASES),--cases $(CASES)) $(if $(MINUTES),--minutes $(MINUTES)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(FAMILY),--family $(FAMILY))

# Proofs that claim more than is true; what the checker accepts is compared with an exact optimum.
test-forgeries: $(READY)
	$(BIN)/python tests/explore_forgeries.py --jobs $(JOBS) $(if $(CASES),--models $(CASES)) $(if $(SEED),--seed $(SEED))

# Files that were never damaged in this way before; failures are shrunk and written to tests/data/files.
test-files: $(READY)
	$(BIN)/python tests/explore_files.py --jobs $(JOBS) $(if $(CASES),--cases $(CASES)) $(if $(MINUTES),--minutes $(MINUTES)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(READER),--reader $(READER))

# Kernels that check every index, under the address and undefined-behaviour sanitizers, in a copy of the package.
SANITIZED := build/sanitized
KERNEL_TESTS := $(foreach name,kernels special sorting chain master optimism tally triple_qa sparse_chains compiled_search sparse_search multigrid double_double simulation products components sa_cvi_ucb sparse_rows safe kernel_borders,$(wildcard tests/*/test_$(name).py))
test-sanitized: $(READY)
	PSCONRL_BUILD=debug $(BIN)/python setup.py --quiet build --build-base $(SANITIZED) --build-lib $(SANITIZED)/lib
	PYTHONPATH=$(SANITIZED)/lib LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	  $(BIN)/pytest -p no:cacheprovider $(KERNEL_TESTS)

# Old libraries emit deprecation warnings about newer dependencies; these are not ours to fix.
test-lowest: $(LOWEST)/.ready
	$(LOWEST)/$(SCRIPTS)/$(PYTEST) --full -W ignore::DeprecationWarning

$(OTHERS)/.ready: export PIP_CONSTRAINT := constraints.txt
$(OTHERS)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(OTHERS)
	$(OTHERS)/$(SCRIPTS)/python -m pip install --quiet --editable '.[test-environments]' hypothesis pytest
	@touch $@

test-environments: $(OTHERS)/.ready
	$(OTHERS)/$(SCRIPTS)/pytest tests/system/test_real_environments.py

test-aarch64: $(READY)
	tools/test_aarch64.sh

# Kernels are compiled and not counted: CONTRIBUTING.md.
coverage: $(READY)
	$(BIN)/$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html:build/coverage

mutants: $(READY)
	$(BIN)/python tests/mutants.py --jobs 2

bench: $(READY)
	$(BIN)/python benchmarks/planner.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/rivals.py --plans
	$(BIN)/python benchmarks/scale.py times

docs: $(READY)
	$(BIN)/zensical build --strict --clean
	$(BIN)/psconrl board page docs/submissions --out site/board.html

# Repeats some runs of every agent on the leaderboard, other ones at every call, and compares them to the last bit; then
# some of the quick runs that the package ships.
SHARE ?= 0.1
QUICK_SHARE ?= 0.01
check-board: $(READY)
	$(BIN)/psconrl board check docs/submissions --share $(SHARE)
	$(BIN)/psconrl board check --share $(QUICK_SHARE)

# The short runs of all agents of the board, with which quick submissions are compared.
quick-board: $(READY)
	$(BIN)/python benchmarks/publish_quick_board.py

# To publish, as the owner of the name: $(DIST)/$(SCRIPTS)/twine upload dist/*
dist: $(DIST)/.ready
	rm -rf dist
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(DIST)/$(SCRIPTS)/python -m build
	$(DIST)/$(SCRIPTS)/twine check --strict dist/*
	$(PYTHON) .ci/try_dist.py dist/*.whl

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY)
	{ sed '/^#/!d' constraints.txt; $(BIN)/python -m pip freeze --exclude-editable; } > $(VENV)/constraints.txt
	mv $(VENV)/constraints.txt constraints.txt

clean:
	rm -rf src/psconrl/kernels/*.so src/psconrl/kernels/*/*.so src/psconrl/kernels/avx2 src/psconrl/kernels/avx512
	rm -rf $(VENV) $(LOWEST) $(OTHERS) $(DIST) build dist site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
