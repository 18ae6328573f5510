# SPDX-License-Identifier: Apache-2.0
# Few targets: run, test, cluster, and what they are made of. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
PROCESSES ?= 3

.PHONY: help run cluster test unit verify generate bench-webhook bench-quota bench-placement bench-extender bench-telemetry prove-quota clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# Two environments in one folder: run needs the locked dependencies only, the rest needs the tools too.
.venv/run.stamp: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Sluice needs Python 3.11 or newer: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else 0'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing the locked dependencies into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

.venv/dev.stamp: requirements-dev.lock .venv/run.stamp
	@echo "installing the locked tools into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

run: .venv/run.stamp  ## serve the example policies here and send example pods (Ctrl-C ends)
	@$(BIN)/python sluice.py demo

cluster: .venv/dev.stamp  ## start a real control plane with Sluice and simulated GPU nodes
	@$(BIN)/python -m tests.controlplane.demo

# Integration tests mostly wait, so more of them run at once than there are cores. Each process has
# a control plane of its own.
test: .venv/dev.stamp verify  ## everything: checks, then every test (builds a control plane once)
	@$(BIN)/python -m tests.controlplane build
	@$(BIN)/pytest --numprocesses=$(PROCESSES) --dist=loadfile --durations=20

unit: .venv/dev.stamp  ## the tests that need no control plane
	@$(BIN)/pytest --ignore=tests/integration

verify: .venv/dev.stamp  ## format, lint, types, import contracts, generated files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell

generate: .venv/dev.stamp  ## write the generated references and manifests anew
	@$(BIN)/python -m tests.support.generate

bench-webhook: .venv/dev.stamp  ## pods created a second, large sets, reviews beside a bare server
	@$(BIN)/python -m tests.bench.creates
	@$(BIN)/python -m tests.bench.sets
	@$(BIN)/python -m tests.bench.webhook

bench-quota: .venv/dev.stamp  ## pods released a second beside a bare client, a lone pod, memory
	@$(BIN)/python -m tests.bench.quota

bench-placement: .venv/dev.stamp  ## GPUs given out beside best-fit; of openb if SLUICE_OPENB_DIR says where
	@$(BIN)/python -m tests.bench.placement
	@$(BIN)/python -m tests.bench.reality

bench-extender: .venv/dev.stamp  ## how long kube-scheduler waits for the extender, and binds with it
	@$(BIN)/python -m tests.bench.extender
	@$(BIN)/python -m tests.bench.scheduling

bench-telemetry: .venv/dev.stamp  ## what telemetry of 6,212 GPUs costs, scraped and from Prometheus
	@$(BIN)/python -m tests.bench.telemetry

prove-quota: .venv/dev.stamp  ## no ceiling passed, no pod lost: leaders killed and frozen under load
	@$(BIN)/python -m tests.prove

clean:  ## remove what the targets above made in the tree
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage run
