# A thin layer over meson: `make help` lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := build
.SUFFIXES:

BUILD ?= build
CONFIG ?=
ARGS ?=
DESTDIR ?=
PREFIX ?= /usr/local
PURGE ?=
FUZZ_SECONDS ?= 60
MESON_FLAGS ?=
CLUSTER ?= /tmp/holt-cluster
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
ifeq ($(CI),true)
MESON_FLAGS += -Dwerror=true
endif

.PHONY: build build-all install-gvisor deps deps-build deps-run deps-test deps-bench run dev hub monitoring test test-runtimes test-kube cluster cluster-down test-v2 check bench fmt lint api web web-dev proto fuzz soak install uninstall \
        clean help

build: deps-build ## Build the programs into build/: holtd, holt and their helpers
	@JOBS=$(JOBS) tools/build $(BUILD) programs $(MESON_FLAGS)

build-all: deps-bench ## Build tests, benches and what they need as well
	@meson setup $(BUILD) $(MESON_FLAGS) $$(test -f $(BUILD)/build.ninja && echo --reconfigure) >/dev/null
	@JOBS=$(JOBS) tools/build $(BUILD) all

deps: ## Install every package: to build, test and measure (apt, a venv, node packages)
	@tools/deps build run test bench fuzz

deps-build:
	@tools/deps build

deps-run:
	@tools/deps build run

install-gvisor: ## Install gVisor (runsc) from the distribution
	@exec tools/deps gvisor

deps-test:
	@tools/deps build test vm

deps-bench:
	@tools/deps build test bench

run: deps-run build ## Build, start holtd, show a first sandbox; CONFIG=FILE takes a settings file, ARGS="--flag ..." goes on
	@exec tools/run $(BUILD) $(if $(CONFIG),--config $(CONFIG)) $(ARGS)

dev: deps-run build ## Like run, and builds and starts again whenever a source file changes
	@exec tools/dev $(BUILD) $(if $(CONFIG),--config $(CONFIG)) $(ARGS)

hub: deps-run build ## The team's hub with two test agents in sandboxes, and the check that they reach nothing else; ARGS=--once
	@exec tools/hub $(BUILD) $(ARGS)

monitoring: build ## Start Prometheus (9090) and Alertmanager (9093) against the running holtd, with the rules of packaging/monitoring
	@tools/deps monitoring
	@exec tools/monitoring $(BUILD)

test: deps-test ## Run every test; the last line is "N passed, N failed"
	@exec tools/run-tests

test-runtimes: deps-test ## Run the tests of the runtimes that take too long for `make test`; `make soak` runs them too
	@exec tools/run-tests --part runtimes

test-kube: deps-test ## Run the tests against a Kubernetes cluster of one node; its programs are built once (some minutes)
	@exec tools/run-tests --part kube

cluster: ## Start a Kubernetes cluster of one node on this machine, in namespaces of its own (root)
	@tests/kube/cluster.py up $(CLUSTER)

cluster-down: ## End that cluster
	@tests/kube/cluster.py down $(CLUSTER)

test-v2: ## Run the native runtime's tests in QEMU: stock Debian kernel, cgroup v2 alone; ARGS="--only limits"
	@tools/deps build v2
	@meson setup $(BUILD) $(MESON_FLAGS) $$(test -f $(BUILD)/build.ninja && echo --reconfigure) >/dev/null
	@JOBS=$(JOBS) tools/build $(BUILD) all
	@exec tools/test-v2 --build $(abspath $(BUILD)) $(ARGS)

check: deps-test ## The quick gate: format, lint, layers, unit tests
	@exec tools/run-tests --quick

soak: deps-test ## Run every test with the long loops in full (an hour)
	@HOLT_SOAK=1 exec tools/run-tests

bench: build-all ## Measure against floor programs and peers; writes docs/benchmarks.md
	@exec .venv/bin/python tests/bench/run.py --build $(BUILD)

fmt: deps-test ## Format the C code
	@exec tools/check-format --fix

lint: deps-test build ## Run clang-tidy on the C code
	@exec tools/lint $(BUILD)

api: build ## Print what the code holds as data: api/openapi.json, docs/settings.md
	@exec tools/check-printed --write $(BUILD)

web: ## Build the dashboard (web/) into web/dist, which holtd embeds; needs Node 20.19 or newer
	@exec tools/web

web-dev: ## The dashboard with hot reload, against the holtd of HOLT_SERVER (http://127.0.0.1:8122)
	@exec tools/web --dev

proto: deps-test build ## Make what comes from api/sandbox/v1/sandbox.proto: clients in examples/ (the C tables: every build)
	@exec tools/check-proto --write

fuzz: ## Fuzz every parser, FUZZ_SECONDS=60 each; TARGETS="http1 ..." names some
	@tools/deps build fuzz
	@exec tools/fuzz $(FUZZ_SECONDS) $(TARGETS)

install: build ## Install programs, units, manual pages and completion; DESTDIR= and PREFIX=/usr/local
	@exec tools/install "$(BUILD)" "$(DESTDIR)" "$(PREFIX)"

uninstall: ## Remove what install put there, and say what stays; PURGE=yes removes the daemons, the data and the user too
	@exec tools/install --remove $(if $(PURGE),--purge) "$(DESTDIR)" "$(PREFIX)"

clean: ## Remove what was built
	rm -rf $(BUILD) build-asan build-fuzz

help: ## Show this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
