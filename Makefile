# The commands live in .venv, which `scripts/setup` makes from the lock file.
SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready
# Runs a program of a dependency group in an environment of its own.
APART := $$(command -v uv || echo .assetflow/tools/bin/uv) run --quiet --isolated --frozen --only-group

.PHONY: audit help setup demo dev screenshots charts docs docs-serve docs-pages golden test test-services faults lint format types pyright mypy imports check clean

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

screenshots: $(READY) ## take the pictures of docs/images, and of every page (ARGS=pages, shop or demo for a part; needs Chromium)
	@$(BIN)/python scripts/screenshots $(ARGS)

charts: $(READY) ## draw docs/images/performance.svg anew, from benchmarks/results
	@$(APART) charts python -m benchmarks.charts

# The pages of docs as links, so that `make docs-serve` follows their changes, and those that are made from the code.
PAGES := .assetflow/pages
docs-pages: $(READY)
	@rm -rf $(PAGES) && mkdir -p $(PAGES)/images
	@ln -s $(CURDIR)/docs/*.* $(PAGES) && ln -s $(CURDIR)/docs/images/* $(PAGES)/images
	@for page in commands coverage errors failures rest; do $(BIN)/python scripts/$$page > $(PAGES)/$$page.md || exit 1; done

docs: docs-pages ## build the documentation as a site into .assetflow/site, and check its pages
	@$(APART) docs zensical build --clean --strict
	@$(BIN)/python -m pytest -q tests/docs/built_site.py

docs-serve: docs-pages ## show the site at http://localhost:8000, and follow the changes of its pages
	@$(APART) docs zensical serve

# How many processes share the tests: more than two for two cores, because those that need a service wait for it.
test: JOBS ?= 3
test-services: JOBS ?= 4
# What a test has to need for `make test-services` to run it; NEEDS="browser or redis" for some of them.
ALL_NEEDS := prefect or spark or browser or postgres or rabbitmq or redis or long
NEEDS ?= $(ALL_NEEDS)
# Each process imports all files that it is given: leave out those in which it would find no test.
MARKS := mark\.($(subst $() or $(),|,$(ALL_NEEDS)))
test: ARGS ?= $$(grep -rLE --include='test_*.py' '^pytestmark = .*$(MARKS)' tests; grep -rl --include='test_*.py' 'mark\.walk' tests)
# The ledger's tests have Postgres by a fixture.
test-services: ARGS ?= $$(grep -rlE --include='test_*.py' '$(MARKS)' tests) tests/ledger
PYTEST := $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder --durations 20

test: $(READY) ## run the tests of one process, four minutes on two cores (ARGS="tests/core -k cron" for some of them)
	@$(PYTEST) -n $(JOBS) -m "not faults and not benchmark and (walk or not ($(ALL_NEEDS)))" $(ARGS)

test-services: $(READY) ## run the tests that need Prefect, Spark, a browser, a broker or stacks (NEEDS="browser or redis")
	@$(PYTEST) -n $(JOBS) -m "($(NEEDS)) and not faults and not benchmark and not walk" $(ARGS)

golden: $(READY) ## write anew the files of what leaves the house (API, JSON, declarations, errors): look at the diff
	@WRITE_GOLDEN=1 $(BIN)/python -m pytest -q -m "not long and not faults" $$(grep -rliE --include='test_*.py' 'golden' tests)

faults: $(READY) ## kill processes at bad moments, and run the benchmarks in short forms: more than an hour
	@$(BIN)/python -m pytest -m "faults or benchmark" $(ARGS)

lint: $(READY) ## check style and formatting, and the schedules of the flows and the examples
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/assetflow lint
	@$(BIN)/assetflow lint tests/examples --ignore AF004 --ignore AF008 --ignore AF012

format: $(READY) ## mend style and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: pyright mypy ## check the types, those of the example flows by both checkers

pyright mypy: $(READY)
	@$(BIN)/$@

imports: $(READY) ## check that imports go down only
	@$(BIN)/lint-imports

audit: $(READY) ## look for known vulnerabilities in the packages of the lock file
	@$(BIN)/python scripts/audit

check: test test-services lint types imports docs ## all that has to pass before a change goes in

clean: ## remove what the other targets made
	@rm -rf .venv .assetflow .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
