# Everything a person types. `make demo` and `make test` do their own set-up.
PYTHON ?= python3.11
ENGINE ?= transformers
SEED ?= 0
JOBS ?= 2
BIN := .venv/bin

# `make setup` is an environment for the CPU: on purpose, also where a GPU is.
DEVICE = $(if $(wildcard .venv/gpu),,CUDA_VISIBLE_DEVICES=)

# The jobs share the cores: more threads than cores wait for each other. Who has nothing left to do takes
# over half of what another has before it. Bytecode is kept, whatever the environment says: without it each
# worker, and each of the processes that tests start, compiles all of the project.
PYTEST = $(DEVICE) OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations 15

.PHONY: setup setup-gpu gpu-check demo test test-slow test-benchmarks test-all test-core check format lint docs system-deps clean

setup: .venv/ready

.venv/ready: $(if $(wildcard .venv/gpu),,pyproject.toml $(wildcard requirements/*.txt requirements/*.sh) \
  $(wildcard requirements/absent/*/pyproject.toml))
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	@# A package that is compiled asks for `python`.
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON=$(BIN)/python sh requirements/install.sh
	@touch $@

# On a machine with a GPU, in place of `make setup`: what requirements/lock-gpu.txt says, some 10 GB.
setup-gpu: .venv/gpu

.venv/gpu: requirements/lock-gpu.txt
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-deps --require-hashes -r $<
	$(BIN)/python -m pip install --quiet --no-deps -e .
	@touch .venv/ready $@

# Whether this machine can do the work, in ten minutes at most; on a machine without a GPU what a CPU can.
gpu-check: setup
	$(BIN)/python eval/doctor.py

demo: setup
	$(DEVICE) PATH="$(CURDIR)/$(BIN):$$PATH" SEEDS="$(SEED)" bash demo.sh engine=$(ENGINE)

# What has to pass before a commit, in minutes: all but what is marked as slow.
test: setup lint
	$(PYTEST) -m "not slow"

# The rest, and every property with more examples.
test-slow: setup
	$(PYTEST) -m "(slow or hypothesis) and not benchmark" --hypothesis-profile thorough

# Benchmarks at their smallest size that start engines or train, one after another.
test-benchmarks: setup
	$(PYTEST) -n 0 -m benchmark tests/benchmarks

test-all:
	$(MAKE) test
	$(MAKE) test-slow
	$(MAKE) test-benchmarks

# What needs no model, on another version of Python: numbers, settings, other people's files. An environment of its own.
CORE := $(addprefix tests/,metrics library conversations construct config)

test-core:
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip install --quiet -e '.[data,report]' pytest pytest-xdist hypothesis statsmodels pandas polars
	.venv-core/bin/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" $(CORE)

# Before a commit.
check: format test

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Debian's Chromium, in which the report's test opens it, and Debian's Slurm, of which the tests start a
# private node; without them those tests are skipped. And the compiler that the pilot's games need.
system-deps:
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update -qq
	$(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium slurmctld slurmd slurm-client munge g++ make

clean:
	rm -rf data runs models
