# Everything a newcomer, a contributor and CI run. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Kept bytecode halves the time of every start of the program and of the stand-in provider.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# The first Python from 3.11 to 3.13 that answers; PYTHON=/path/to/python chooses another.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& command -v "$$p" && break; done)
PIP := $(BIN)/pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
SHELL_FILES := $(shell git ls-files -co --exclude-standard -- '*.sh' '.ci/*')

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11, 3.12 or 3.13 found; name one: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Two stages: the rehearsal needs no test tools. Each is marked by what it was made of: in a fresh checkout all files are new, and
# what is installed may be there all the same.
IS_THERE = [ "$$(cat $@ 2>/dev/null)" = "$$(cat $^ | cksum)" ]
MARK = cat $^ | cksum >$@

$(VENV)/.rehearsal: requirements/run.txt requirements/build.txt pyproject.toml | $(VENV)/bin/python
	@$(IS_THERE) || { set -x; $(PIP) install --require-hashes -r requirements/run.txt -r requirements/build.txt \
		&& $(PIP) install --no-deps --no-build-isolation --editable .; }
	@$(MARK)

$(VENV)/.develop: requirements/develop.txt $(VENV)/.rehearsal
	@$(IS_THERE) || { set -x; $(PIP) install --require-hashes -r requirements/develop.txt; }
	@$(MARK)

.PHONY: setup
setup: $(VENV)/.develop ## install everything for work on the project into .venv

REPORT ?= rehearsal.html
.PHONY: rehearse
rehearse: $(VENV)/.rehearsal ## watch an env.list become a cluster and go away again, simulated, in half a minute
	@$(BIN)/python -m rehearsal story --report "$(REPORT)"

PICTURE := docs/rehearsal.svg
.PHONY: picture
picture: $(VENV)/.rehearsal ## renew the README's picture from a rehearsal that is run for it
	@$(BIN)/python -m rehearsal story --picture $(PICTURE)

.PHONY: check
check: $(VENV)/.develop ## linters, types, formats
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m provision.terraform fmt -check -diff -recursive terraform
	$(BIN)/shellcheck $(SHELL_FILES)

# Which layers there are, what each needs and how it is run: tests/layers.py.
LAYERS := $(BIN)/python -m tests.layers --workers $(WORKERS) $(if $(PROVIDER),--provider "$(PROVIDER)") $(if $(QUICK),--short)
# How many examples hypothesis draws: quick or usual; CI draws more than a desk.
PROFILE ?= quick
.PHONY: test test-rest test-all test-every
test: $(VENV)/.develop ## what a change must pass before anything else; under five minutes on two cores
	$(LAYERS) quick --hypothesis-profile=$(PROFILE)

test-all: $(VENV)/.develop ## everything that CI runs: slow tests, start-up, Kubernetes and image too
	$(LAYERS) all

test-every: $(VENV)/.develop ## test-all, with every cell of the products that CI has a sample of
	$(LAYERS) all --every

test-rest: $(VENV)/.develop ## what test-all has on top of test
	$(LAYERS) rest

NAMES := unit contract terraform rehearsal runs chaos startup browser kubernetes image provider
.PHONY: $(NAMES:%=test-%)
$(NAMES:%=test-%): test-%: $(VENV)/.develop
	$(LAYERS) $*

# What four need beyond Python and Terraform they fetch themselves, and keep outside the tree. The
# google provider has to be given: PROVIDER=FILE. Without it test-all says that its layer did not run.
test-unit: ## no process, no network
test-contract: ## settings, README, examples and variables agree; the order of imports
test-terraform: ## the modules: format, validate, terraform test
test-rehearsal: ## the simulated cloud and the stand-in provider, against recorded traffic too
test-runs: ## whole actions against the simulated cloud
test-chaos: ## blows at fixed moments
test-startup: ## the real start-up script in namespaces and on real Debians, Ray and torchrun on three VMs (Linux, root)
test-browser: ## the report's page in a real browser
test-kubernetes: ## a real Kubernetes and Kueue; needs Go, and 8 minutes to build them once
test-image: ## the Dockerfile, built and run; root on Debian, or an engine that is there
test-provider: ## whole runs with HashiCorp's own google provider, PROVIDER=FILE; QUICK=yes: half an hour of them

GOLDENS := $(PYTEST) -n $(WORKERS) --dist worksteal --goldens tests
.PHONY: test-golden goldens
test-golden: $(VENV)/.develop ## every test that compares with a kept text, tests/golden above all
	$(GOLDENS)

goldens: $(VENV)/.develop ## write what is made now over those texts; git diff shows what changed
	$(GOLDENS) --update-goldens

DOCKER ?= docker
IMAGE ?= aiinfra
# BUILD_OPTIONS="--build-arg=NAME=VALUE ..." replaces a base or a download, for a mirror of your own.
.PHONY: image
image: ## the container image; IMAGE=NAME:TAG names it. Needs a container engine and the network
	DOCKER_BUILDKIT=1 $(DOCKER) build --tag $(IMAGE) \
		--build-arg NAME="$(IMAGE)" \
		--build-arg VERSION="$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' provision/__init__.py)" \
		--build-arg REVISION="$$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
		--build-arg CREATED="$$(date -u +%FT%TZ)" \
		$(BUILD_OPTIONS) .

.PHONY: manifests
manifests: ## what GKE clusters get, for packages made here: pipx install . and so on. Needs an engine and the network
	DOCKER_BUILDKIT=1 $(DOCKER) build --target packaged --output manifests $(BUILD_OPTIONS) .

N ?= 100
.PHONY: chaos
chaos: $(VENV)/.develop ## N=1000 blows at random moments; SEED=... draws the same again, CASE=... is one alone
	$(BIN)/python -m tests.chaos --number $(N) --workers $(WORKERS) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case '$(CASE)')

.PHONY: fuzz
fuzz: $(VENV)/.develop ## 10,000 env files and damaged documents that nobody would write, each way one is read
	$(PYTEST) -n $(WORKERS) --timeout=0 --hypothesis-profile=long tests/unit/test_any_*.py

.PHONY: bench
bench: $(VENV)/.develop ## what the program costs on top of Terraform, as ratios in one run
	$(BIN)/python -m bench

# Real money, hence never part of CI and no layer of tests: it says the cost and asks first. OTHER_ZONE=,
# COST_LIMIT= (USD, default 12) and ONLY="vm slurm gke" are its options, OPTIONS="--yes --rehearse" others.
.PHONY: test-google
test-google: $(VENV)/.develop ## the smallest clusters on Google itself: PROJECT_ID=... ZONE=...; costs money
	@test -n "$(PROJECT_ID)" && test -n "$(ZONE)" || { \
		echo "make: name them: make test-google PROJECT_ID=my-project ZONE=us-central1-b" >&2; exit 2; }
	@$(BIN)/python -m smoke --project "$(PROJECT_ID)" --zone "$(ZONE)" \
		$(if $(OTHER_ZONE),--other-zone "$(OTHER_ZONE)") $(if $(COST_LIMIT),--cost-limit "$(COST_LIMIT)") \
		$(ONLY:%=--only %) $(OPTIONS)

.PHONY: docs
docs: $(VENV)/.rehearsal ## renew what is generated from the code: pages of docs/reference, tables of THIRD_PARTY.md and of Terraform's variables
	$(BIN)/python -m provision.settings.documentation docs/reference/settings.md docs/reference/command-line.md
	$(BIN)/python -m provision.google.resources docs/reference/resources.md
	$(BIN)/python -m provision.preflight.table docs/reference/online-checks.md
	$(BIN)/python -m provision.documents.schema docs/reference/output.schema.json docs/reference/problems.md
	$(BIN)/python -m provision.lifecycle.consent docs/reference/consent.md
	$(BIN)/python -m tests.terraform_tables
	$(BIN)/python image/sbom.py --page THIRD_PARTY.md

# In the same environment: its own requirements have the versions that develop.txt has.
$(VENV)/.site: requirements/site.txt | $(VENV)/bin/python
	@$(IS_THERE) || { set -x; $(PIP) install --require-hashes -r requirements/site.txt; }
	@$(MARK)

.PHONY: site
site: $(VENV)/.site ## the documentation as a site, with search, in website/build; a dead link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --config-file website/mkdocs.yml
	@echo "To read it: $(BIN)/python -m http.server --directory website/build"

.PHONY: facts
facts: $(VENV)/.rehearsal ## PROJECT_ID=...: renew the lists of zones, machine types, their sizes, GPUs and prices from Google
	$(BIN)/python -m provision.preflight.facts $(PROJECT_ID)

.PHONY: facts-check
facts-check: $(VENV)/.develop ## what Google's descriptions of its APIs have that nobody has looked at; SEEN=yes: somebody has
	@$(BIN)/python -m tests.google_facts $(if $(SEEN),--seen)

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	$(if $(UPGRADE),--upgrade-package $(UPGRADE))
.PHONY: lock
lock: $(VENV)/.develop ## renew requirements/*.txt from pyproject.toml; UPGRADE=PACKAGE raises that one
	$(COMPILE) --group run --output-file requirements/run.txt
	$(COMPILE) --group run --group develop --constraint requirements/run.txt --output-file requirements/develop.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' \
		| $(COMPILE) - --constraint requirements/develop.txt --output-file requirements/build.txt
	$(COMPILE) --group site --constraint requirements/develop.txt --output-file requirements/site.txt

.PHONY: clean
clean: ## remove what the targets above made in the tree
	rm -rf $(VENV) website/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
