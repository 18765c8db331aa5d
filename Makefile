# make demo: install into .venv and watch a memory work. make test: everything that is checked.
# Needs Python 3.11 or later and make, nothing else. Another Python: make PYTHON=/path/to/python3.12 demo

PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=

.PHONY: demo test check-python generate format clean

demo: $(VENV)/.installed
	@$(BIN)/hindsight demo

test: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict hindsight
	$(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)

# Makes the modules of the sync client from those of the async one.
generate: $(VENV)/.installed-dev
	$(BIN)/python tools/generate_sync_client.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: nothing is installed again until pyproject.toml changes.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo 'Installing into $(VENV), once; it takes a minute or two.'
	@$(BIN)/python -m pip install --quiet --editable '.[embedded,local]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo 'Installing into $(VENV), once; it takes a minute or two.'
	@$(BIN)/python -m pip install --quiet --editable '.[embedded,local,dev]'
	@touch $@ $(VENV)/.installed

$(BIN)/python: | check-python
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'No virtual environment: is python3-venv installed?' >&2; exit 1; }

check-python:
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { \
		echo 'Python 3.11 or later was not found: install it, or run make PYTHON=/path/to/python3.11 demo' >&2; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo '$(PYTHON) is not Python 3.11 or later: run make PYTHON=/path/to/python3.11 demo' >&2; exit 1; }
