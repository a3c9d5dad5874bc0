# Everything a person types. `make demo` and `make test` do their own set-up.
PYTHON ?= python3.11
ENGINE ?= transformers
SEED ?= 0
JOBS ?= 2
BIN := .venv/bin

.PHONY: setup demo test lint docs system-deps clean

setup: .venv/ready

.venv/ready: pyproject.toml $(wildcard requirements/*.txt requirements/*.sh) $(wildcard requirements/absent/*/pyproject.toml)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	@# A package that is compiled asks for `python`.
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON=$(BIN)/python sh requirements/install.sh
	@touch $@

demo: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" bash demo.sh engine=$(ENGINE) seed=$(SEED)

test: setup lint
	@# The jobs share the cores: more threads than cores wait for each other.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Debian's Chromium, in which the report's test opens it, and Debian's Slurm, of which the tests start a
# private node; strace, which benchmarks/faults.py kills with; without them those tests are skipped. And
# the compiler that the pilot's games need.
system-deps:
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update -qq
	$(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium slurmctld slurmd slurm-client munge strace g++ make

clean:
	rm -rf data runs models
