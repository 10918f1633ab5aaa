# The commands live in .venv, which `scripts/setup` makes from the lock file.
SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready

.PHONY: audit help setup demo dev screenshots charts golden test test-long test-heavy faults lint format types imports check clean

help: ## show this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: $(READY) ## install everything into .venv; the other targets do it when needed

$(READY): pyproject.toml uv.lock scripts/setup
	@scripts/setup
	@touch $(READY)

demo: $(READY) ## run the pipelines on real data in a stack of their own, and show what happened
	@$(BIN)/assetflow demo $(ARGS)

dev: $(READY) ## start the same stack and leave it running
	@$(BIN)/assetflow dev $(ARGS)

screenshots: $(READY) ## take the pictures of docs/images, and of every page (ARGS=pages or ARGS=demo for a part; needs Chromium)
	@$(BIN)/python scripts/screenshots $(ARGS)

charts: $(READY) ## draw docs/images/performance.svg anew, from benchmarks/results
	@$$(command -v uv || echo .assetflow/tools/bin/uv) run --quiet --isolated --only-group charts python -m benchmarks.charts

# How many processes share the tests. Most tests wait for other processes, the long ones most: more than two for two cores.
test: JOBS ?= 3
test-long: JOBS ?= 4
# Each process would import every other file too, to find no long test in it.
test-long: ARGS ?= $$(grep -rl --include='test_*.py' 'mark\.long' tests)
# Only those with one of these markers, such as NEEDS="browser or redis"; CI runs those that need Spark or a service.
test-long: NEEDS ?= long

test: $(READY) ## run the tests (ARGS="tests/core -k cron" for some of them)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder --durations 20 -m "not faults and not long and not heavy" $(ARGS)

test-long: $(READY) ## run the tests that start whole stacks, browsers and Spark processes, or kill them
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations 20 -m "long and ($(NEEDS)) and not heavy and not faults" $(ARGS)

test-heavy: $(READY) ## run the tests on clusters and larger installations, and the benchmarks in short forms
	@$(BIN)/python -m pytest -m "heavy and not faults" $(ARGS)

golden: $(READY) ## write anew the files of what leaves the house (API, JSON, declarations, errors): look at the diff
	@WRITE_GOLDEN=1 $(BIN)/python -m pytest -q -m "not long and not heavy and not faults" $$(grep -rliE --include='test_*.py' 'golden' tests)

faults: $(READY) ## run the long tests that kill processes at bad moments
	@$(BIN)/python -m pytest -m faults $(ARGS)

lint: $(READY) ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(READY) ## mend style and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(READY) ## check the types, those of the example flows by both checkers
	@$(BIN)/pyright
	@$(BIN)/mypy

imports: $(READY) ## check that imports go down only
	@$(BIN)/lint-imports

audit: $(READY) ## look for known vulnerabilities in the packages of the lock file
	@$(BIN)/python scripts/audit

check: test test-long lint types imports ## all that has to pass before a change goes in

clean: ## remove what the other targets made
	@rm -rf .venv .assetflow .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
