# Two commands do everything: `make reproduce` runs the main job, `make test` the tests.
# Both create .venv on first use and need nothing but Python >= 3.11 and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# One BLAS thread: small linear systems are many times slower with more.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS      := 1
export MKL_NUM_THREADS      := 1

.PHONY: help reproduce test test-slow mutants bench docs format clean

help:
	@echo "make reproduce   the paper's figures and a page, short form (two minutes): results/quick/"
	@echo "make test        style, types, tests"
	@echo "make test-slow   the minutes-long checks"
	@echo "make mutants     small faults put into the source: does a test notice each?"
	@echo "make bench       benchmarks; tables go to benchmarks/RESULTS.md by hand"
	@echo "make docs        the documentation site: site/index.html"
	@echo "make format      let ruff tidy the code"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "psconrl needs Python >= 3.11; $(PYTHON) is older. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

reproduce: $(READY)
	$(BIN)/psconrl reproduce --quick

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

test-slow: $(READY)
	$(BIN)/pytest -m slow

mutants: $(READY)
	$(BIN)/python tests/mutants.py --jobs 2

bench: $(READY)
	$(BIN)/python benchmarks/planner.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/rivals.py --plans

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
