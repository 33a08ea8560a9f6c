# Each target sets up what it needs: `make demo` or `make test` in a fresh clone is enough.
# Nothing here reads your AWS configuration, or writes outside the checkout (but apiserver-assets: its cache).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
SAM_VENV := .venv-sam
SAM_STAMP := $(SAM_VENV)/.installed
PIP_FLAGS := --quiet --disable-pip-version-check --no-input
CHECKED := layers/provider/python/nebula functions local cli tests

export PYTHONPATH := $(CURDIR):$(CURDIR)/layers/provider/python
export SAM_CLI_TELEMETRY := 0

.PHONY: help venv demo test test-long lint types template build apiserver-assets stack invoke explain credentials gating mutants bench clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

venv: $(STAMP) ## the environment of everything but SAM

$(STAMP): requirements-dev.txt layers/dependencies/requirements.txt
	@python="$$(.ci/find-python)" || { echo "make: needs Python 3.11 or later with venv (Debian: apt-get install python3-venv)" >&2; exit 1; }; \
	[ -x $(PY) ] || "$$python" -m venv $(VENV)
	@echo "installing the pinned packages into $(VENV) ..." >&2
	@$(PY) -m pip install $(PIP_FLAGS) -r requirements-dev.txt
	@touch $@

$(SAM_STAMP): requirements-sam.txt
	@python="$$(.ci/find-python)" || { echo "make: needs Python 3.11 or later with venv" >&2; exit 1; }; \
	[ -x $(SAM_VENV)/bin/python ] || "$$python" -m venv $(SAM_VENV)
	@echo "installing SAM into $(SAM_VENV) ..." >&2
	@$(SAM_VENV)/bin/python -m pip install $(PIP_FLAGS) -r requirements-sam.txt
	@touch $@

demo: $(STAMP) ## labelled Pods become running rented instances and are given back, on this machine
	@$(PY) -m local.demo

# With a real API server where one is given, or lies in the cache; building one is never part of this.
test: $(STAMP) ## every test
	assets="$${KUBEBUILDER_ASSETS:-$$(.ci/apiserver/assets --cached)}"; \
	KUBEBUILDER_ASSETS="$$assets" $(PY) -m pytest -q $(TESTS)

apiserver-assets: $(STAMP) ## etcd and kube-apiserver for the tests marked apiserver; needs Go once, then the cache
	@PYTHON="$(CURDIR)/$(PY)" .ci/apiserver/assets

test-long: $(STAMP) ## faults at length: 200 Pods through 50 kills of the worker (SEED=1), a crash before and after each call
	PLUG_PODS=200 PLUG_KILLS=50 PLUG_SEED="$(or $(SEED),1)" LONG_TESTS=1 $(PY) -m pytest -q -s \
	  tests/integration/test_worker_killed_at_random.py tests/property/test_crash_paths.py

lint: $(STAMP) ## ruff: rules, docstrings, format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(STAMP) ## mypy, strict
	$(PY) -m mypy

template: $(STAMP) ## cfn-lint and the tests of the transformed template
	$(VENV)/bin/cfn-lint template.yaml
	$(PY) -m pytest -q tests/template

build: $(SAM_STAMP) ## sam build; needs the runtime's interpreter (python3.13)
	@python="$$(.ci/find-python 3.13)" || { echo "make build: no python3.13 here, which the runtime of template.yaml needs" >&2; exit 1; }; \
	PATH="$$(dirname "$$python"):$$PATH" $(SAM_VENV)/bin/sam build

stack: $(STAMP) ## the whole stack on this machine, until interrupted
	@$(PY) -m local.stack

invoke: $(STAMP) ## one event to one function: make invoke FN=placement EVENT=events/pod-gated.json
	@$(PY) -m local.invoke $(if $(FN),"$(FN)") $(if $(EVENT),"$(EVENT)")

explain: $(STAMP) ## why a Pod would run where: make explain POD=pod.yaml POOL=nodepool.yaml [OUTPUT=json]
	@$(PY) -m cli explain $(if $(POD),--pod "$(POD)") $(if $(POOL),--pool "$(POOL)") --output "$(or $(OUTPUT),table)"

credentials: $(STAMP) ## lent registry credentials: make credentials STACK=nebula|ARGS="--env-file local/sam-env.json" [ARGS="--plan"]
	@$(PY) -m cli credentials $(if $(STACK),--stack "$(STACK)") $(ARGS)

gating: $(STAMP) ## which gate policy a cluster can run: make gating [ARGS="--apply --context NAME"]; needs kubectl
	@$(PY) -m cli gating $(ARGS)

mutants: $(STAMP) ## small breaking patches, each of which must turn its named test red: make mutants [WORDS="..."]
	@$(PY) -m tests.mutants.run $(WORDS)

bench: $(STAMP) ## every budget of docs/performance.md, measured: make bench [ARGS="--only engine"]
	@$(PY) -m tests.benchmark $(ARGS)

clean: ## remove what the other targets made
	rm -rf $(VENV) $(SAM_VENV) .aws-sam .local .pytest_cache .mypy_cache .ruff_cache .hypothesis
