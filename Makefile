# `make up` serves the demo and `make test` runs the tests: each is the only command a fresh machine needs.
# Both first build the virtual environment from uv.lock; once it is there, nothing asks the network again.

.DEFAULT_GOAL := help

VENV ?= .venv
HOST ?= 127.0.0.1
PORT ?= 8000
PYTEST_ARGS ?=
# Set PYTHON to choose the interpreter; otherwise the first of these that is new enough is taken.
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)

BIN := $(VENV)/bin
STAMP := $(VENV)/.synced
UV_VERSION := $(shell sed -n '/^name = "uv"$$/{n;s/^version = "\(.*\)"$$/\1/p;}' uv.lock)

export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_PYTHON_DOWNLOADS := never
unexport VIRTUAL_ENV
# Where the system keeps a certificate store, trust it (company proxies, mirrors); otherwise uv's own is used.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem),)
export UV_SYSTEM_CERTS ?= true
endif

# Settings for what only reads the code: type checking, migrations, contracts.
STATIC_ENV = DEMO= SECRET_KEY=static-analysis-only-0123456789-abcdefghijklmnopqrstuvwxyz KEY_PEPPER=static-analysis-only-0123456789 \
	FIELD_ENCRYPTION_KEYS=c3RhdGljLWFuYWx5c2lzLW9ubHktMzItYnl0ZXMtLS0= DATABASE_URL=sqlite://:memory: REDIS_URL= GATEWAY_CONFIG=

.PHONY: help install up test lint format types imports migrations features check clean

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1: \2/p' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## build the virtual environment from uv.lock

up: export DEMO := true
up: install ## serve the demo on http://HOST:PORT (127.0.0.1:8000)
	@$(BIN)/python manage.py migrate --noinput
	@$(BIN)/python manage.py seed_demo
	@exec $(BIN)/python manage.py serve --host $(HOST) --port $(PORT)

test: install ## run the tests; TEST_DATABASE_URL and TEST_REDIS_URL put them on real services
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: install ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: install ## rewrite the code as ruff wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: install ## mypy
	$(STATIC_ENV) $(BIN)/mypy .

imports: install ## the import contracts
	$(BIN)/lint-imports --no-cache

migrations: install ## fail when a model change has no migration
	$(STATIC_ENV) $(BIN)/python manage.py makemigrations --check --dry-run

features: install ## write docs/features.md: what each client can have of each provider
	$(BIN)/python -m tests.matrix.page

check: lint types imports migrations test ## everything above that can fail

clean: ## remove the virtual environment and the caches, not var/
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/uv:
	@found=; for candidate in $(PYTHONS); do \
		if "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
		then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo 'Python 3.11 or newer with its venv module is needed (on Debian: apt install python3-venv). Tried: $(PYTHONS)' >&2; \
		exit 1; \
	fi; \
	echo "Building $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv$(if $(UV_VERSION),==$(UV_VERSION))'

$(STAMP): uv.lock | $(BIN)/uv
	@$(BIN)/uv sync --frozen --quiet
	@touch $@
