# `make demo` shows what omfb does, `make test` runs every check. Both start from nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check unit docs docs-quick hostile soak bench bench-quick clean

demo: $(VENV)/installed
	$(BIN)/omfb demo --out results

test: check unit

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2  # two workers with two threads each would stall

# The site in docs/_build/html, without network; docs-quick does not run the gallery. Warnings are
# errors, links that lead nowhere in the site among them.
docs: $(VENV)/docs
	rm -rf docs/reference/generated docs/examples  # pages of what is gone
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html

docs-quick: $(VENV)/docs
	rm -rf docs/reference/generated docs/examples
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html -D plot_gallery=0 docs docs/_build/quick

$(VENV)/docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

# Try to break it for some minutes; millions of rows. Both write their table to docs/reliability.md.
MINUTES ?= 20
hostile: $(VENV)/installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -W ignore -m tests.hostile --minutes $(MINUTES) --page

soak: $(VENV)/installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.hostile.soak --page

# Side by side with every peer: two hours, but what is in benchmarks/results is not measured again.
bench: $(VENV)/bench
	for name in holes nothing_set complete drift scaling floor; do \
	  $(BIN)/python benchmarks/$$name.py --out benchmarks/results/$$name.json || exit 1; \
	done
	$(BIN)/python benchmarks/page.py --readme README.md

# Three minutes: are the first three of each panel on the page the first three here?
bench-quick: $(VENV)/bench
	$(BIN)/python benchmarks/holes.py --quick

$(VENV)/bench: $(VENV)/installed benchmarks/peers.py
	$(BIN)/python benchmarks/peers.py
	touch $@

$(VENV)/installed: pyproject.toml src/omfb/__init__.py  # which has the version
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

clean:
	rm -rf $(VENV) results docs/_build docs/examples docs/reference/generated .numba-cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
