# Two commands for everybody: make demo, make test.  The rest is for who changes zdo.
# Each sets up what it needs: Python 3.11+, make and a package index are enough.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# The machine's own settings must not reach the tools (a polluted suite counts the same).
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check lint types wheel contract mutation torture bench clean

demo: $(VENV)/.ready
	$(BIN)/python -m dispatch.rig.demo

test: $(VENV)/.ready
	$(BIN)/coverage erase
	$(BIN)/python -m tests.gate $(BIN)/coverage run -m pytest -n auto -m "not contract"
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

check: lint types test wheel

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.ready
	$(BIN)/mypy

wheel: $(VENV)/.ready
	$(BIN)/python -m tests.acceptance.wheel

contract: $(VENV)/.contract
	$(BIN)/python -m tests.gate $(BIN)/python -m pytest -m contract tests/contract

mutation: $(VENV)/.ready
	$(BIN)/python -m tests.mutation

torture: $(VENV)/.ready
	$(BIN)/python -m tests.torture

bench: $(VENV)/.ready
	$(BIN)/python -m bench

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "zdo needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/.contract: $(VENV)/.ready
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev,contract]'
	@touch $@

clean:
	rm -rf $(VENV) dist build .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis
