# Two commands do everything on a fresh machine: `make up` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests start hundreds of Python processes: without bytecode files, each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up test more check style types suite oracle conformance bench soak lakehouse faults clients fuzz lock clean help

# Some tests wait, so more of them run at once than there are cores. tests/parallel.py says which share a worker.
WORKERS ?= 4
PYTEST := $(BIN)/pytest -n $(WORKERS)

help: ## Show the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(READY): locks/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Odradek needs Python 3.11 or newer; set PYTHON=... to one")'
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r locks/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $(READY)

up: $(READY) ## The oil rigs from sensor to alert: broker, simulated pumps, pipeline on Spark, live view, console
	@$(BIN)/odradek up $(ARGS)

check: style types ## Style, types, import contracts

style: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/python -m tests.check_types
	$(BIN)/lint-imports
	$(BIN)/deptry src

# mypy uses one core: it runs beside the first tests.
test: style ## Everything that must hold; about 12 minutes on 2 cores
	@$(MAKE) --no-print-directory --jobs=2 types suite

suite: $(READY)
	$(PYTEST) $(ARGS)

more: $(READY) ## Variants and longer runs of what `make test` shows; for a change of what they test
	$(PYTEST) --suite more --hypothesis-profile=many $(ARGS)
	EXAMPLES=2 $(PYTEST) -m hypothesis --hypothesis-profile=many $(ARGS)

oracle: $(READY) ## Apache Kafka gives the answers that the tests state (ARGS=--update records them again)
	$(PYTEST) --suite oracle $(ARGS)

conformance: $(READY) ## Apache Kafka's own tests on Odradek, one class at a time; about an hour
	$(BIN)/pytest -v --suite conformance $(ARGS) tests/conformance

bench: $(READY) ## Odradek beside Apache Kafka; writes docs/benchmarks.md
	$(BIN)/python -m bench $(ARGS)

soak: $(READY) ## Long tests that rarely fail: SEEDS of the simulation, CRASH_ROUNDS, GROUP_SEEDS under load, EXAMPLES of messages, KILLS of pipelines, DEFINITIONS drawn, every client
	ODRADEK_SIMULATION_SEEDS=$(or $(SEEDS),1000-1999) $(BIN)/pytest -n 2 -q tests/simulation -k remembered
	EXAMPLES=2 $(PYTEST) -q --suite test,more -m hypothesis --hypothesis-profile=random
	EXAMPLES=$(or $(EXAMPLES),50) $(BIN)/pytest -n 2 -q --suite test,more,soak --hypothesis-profile=random tests/protocol
	DAMAGED_FILES=$(or $(DAMAGED_FILES),200) CRASH_ROUNDS=$(or $(CRASH_ROUNDS),200) CRASH_SEED=$(or $(CRASH_SEED),2) $(BIN)/pytest -q -rP --suite test,more tests/crash
	ODRADEK_GROUP_RECORDS=5000000 ODRADEK_GROUP_SEEDS=$(or $(GROUP_SEEDS),2-4) $(BIN)/pytest -q -rP --suite test,more,soak tests/groups/test_under_load.py
	GROUP_RECOVERY_S=5 $(BIN)/pytest -q -rP --suite test,more,soak tests/groups/test_broker_restart.py
	PIPELINE_KILLS=$(or $(KILLS),20) $(BIN)/pytest -q -rP --suite test,more,soak tests/pipelines/kills
	EQUIVALENCE_CASES=$(or $(DEFINITIONS),500) $(BIN)/pytest -q -rP --suite test,more,soak tests/pipelines/generated
	$(PYTEST) -q --suite soak --hypothesis-profile=random --ignore tests/protocol --ignore tests/groups/test_under_load.py --ignore tests/groups/test_broker_restart.py --ignore tests/pipelines/kills --ignore tests/pipelines/generated

# Delta and Iceberg exist for PySpark 4.1 only, which has an environment of its own.
LAKEHOUSE := .venv-lakehouse
LAKEHOUSE_SPARK := 4.1.1
$(LAKEHOUSE)/.ready: locks/dev.txt pyproject.toml
	@echo "setting up $(LAKEHOUSE) (once)"
	@$(PYTHON) -m venv $(LAKEHOUSE)
	@sed -E '/^pyspark==/,/^[^ ]/{/^pyspark==/d;/^ /d}' locks/dev.txt > $(LAKEHOUSE)/requirements.txt
	@$(LAKEHOUSE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(LAKEHOUSE)/requirements.txt
	@$(LAKEHOUSE)/bin/python -m pip install --quiet --disable-pip-version-check pyspark==$(LAKEHOUSE_SPARK)
	@$(LAKEHOUSE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(LAKEHOUSE)/.ready

lakehouse: $(LAKEHOUSE)/.ready ## Delta and Iceberg tables, on PySpark 4.1.1
	$(LAKEHOUSE)/bin/pytest --suite lakehouse $(ARGS) tests/pipelines/lakehouse

faults: $(READY) ## Brokers that are killed, suspended and cut off under load; writes docs/reliability.md; about 20 minutes
	$(BIN)/pytest -q -s -p no:randomly --suite faults $(ARGS) tests/faults

clients: $(READY) ## The tests of other clients (franz-go, sarama …), on one broker and on clusters
	$(BIN)/pytest -v -p no:randomly --suite clients $(ARGS) tests/client_suites

fuzz: $(READY) ## 10 million inputs for the parsers, those before authentication first, then ten minutes for a broker (FUZZ_RUNS, FUZZ_SECONDS)
	@mkdir -p build/fuzz build/fuzz-first build/fuzz-all
	$(BIN)/python -m tests.fuzz.fuzz_parsers first -artifact_prefix=build/fuzz-first/ -runs=$(or $(FUZZ_RUNS),5000000) -max_len=512 -timeout=20 -rss_limit_mb=1024 build/fuzz-first
	$(BIN)/python -m tests.fuzz.fuzz_parsers all -artifact_prefix=build/fuzz-all/ -runs=$(or $(FUZZ_RUNS),5000000) -max_len=1024 -timeout=20 -rss_limit_mb=1024 build/fuzz-all
	$(BIN)/python -m tests.fuzz.fuzz_wire -artifact_prefix=build/fuzz/ -max_total_time=$(or $(FUZZ_SECONDS),600) -max_len=4096 build/fuzz

lock: $(READY) ## Pin the newest dependencies (needs uv)
	uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade pyproject.toml -o locks/runtime.txt
	uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade pyproject.toml --group dev -o locks/dev.txt
	uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --constraints locks/dev.txt pyproject.toml --extra cluster --extra console --extra security -o locks/container.txt
	uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --constraints locks/dev.txt --group build -o locks/build.txt

clean: ## Remove what the other commands made
	rm -rf $(VENV) $(LAKEHOUSE) dist build .pytest_cache .mypy_cache* .ruff_cache .hypothesis
