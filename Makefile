# Every target works as the first command on a fresh machine with Python 3.11+ and make.
PYTHON ?= python3
PY := .venv/bin/python
.DEFAULT_GOAL := help

.PHONY: help run test check bench soak lock clean
help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "treadle needs Python 3.11 or newer; set PYTHON=python3.11")'
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: .venv/ready  ## the sign-up example: a real mail sent by a job, on SQLite
	@$(PY) examples/signup/run.py

test: .venv/ready  ## every test, real servers included
	@$(PY) -m pytest -n auto

check: .venv/ready  ## lint, types, layers
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

bench: .venv/ready  ## measure treadle, the bare loops and the peers in one run
	@$(PY) -m benchmarks
	@$(PY) -m benchmarks.service

soak: .venv/ready  ## the long crash tests
	@$(PY) -m pytest -n auto -m soak -s

lock: .venv/ready  ## pin the development environment anew
	@$(PY) -m pip install --quiet 'uv>=0.13'
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --group dev --all-extras --generate-hashes \
		--no-header --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock

clean:  ## remove what the targets made
	rm -rf .venv data dist benchmarks/.peers
