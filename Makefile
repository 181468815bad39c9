# Two commands do everything, installation included: `make run` and `make test`.

PYTHON ?= python3
STUDY ?= ner
CORES ?= 2

export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help run test portable lock clean
.DEFAULT_GOAL := help

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: .venv/ready ## run a study (STUDY=ner, or STUDY=all), print its table, and whether it was reproduced
	snakemake --cores $(CORES) $(STUDY)
	wxb table $(STUDY)
	wxb compare --brief --study $(STUDY) || true

test: .venv/ready ## format, lint, types, tests
	ruff format --check
	ruff check
	snakefmt --check Snakefile
	mypy
	snakemake --lint
	pytest

.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wxb needs Python 3.11 or later; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --requirement requirements.txt
	.venv/bin/pip install --quiet --no-deps --editable .
	touch $@

portable: .venv/ready ## run the profile tiny in a clone of HEAD, and promise its bytes in reports/tiny.json
	clone=$$(mktemp -d) && trap "rm -rf $$clone" EXIT && git clone --quiet . $$clone && cd $$clone && \
	  wxb params tiny && snakemake --cores $(CORES) && \
	  python -m wxb.reproduction.promise > made.json && mv made.json $(CURDIR)/reports/tiny.json

# The lock is what a fresh environment resolves to. Local version labels (+cpu) are left out, so
# that the same lock serves machines with and without a GPU.
lock: ## write requirements.txt anew from pyproject.toml
	rm -rf .venv
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet torch==2.13.0 --editable '.[dev]'
	.venv/bin/pip freeze --exclude-editable | sed 's/+cpu$$//' > requirements.txt

clean: ## remove the environment and everything the pipeline made
	rm -rf .venv .snakemake .wxb data models logs reports/cost reports/predictions reports/training reports/*.html
