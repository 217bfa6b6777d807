# Next Token: `make` lists what there is; `make run` and `make test` need nothing but python3 and make.
.DEFAULT_GOAL := help
PYTHON ?= python3
PORT ?= 8000
NAME ?= instructor
BIN := .venv/bin
export NEXT_TOKEN_SECRET_KEY ?= $(shell cat var/secret-key 2>/dev/null)

.PHONY: help install run check test test-postgresql content bench bench-peers instructor model

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed var/secret-key  ## make .venv with the requirements

.venv/installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is %d.%d" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

var/secret-key: | .venv/installed
	mkdir -p var
	umask 077 && $(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))' > $@

run: install  ## set up what is missing and serve the site; PORT=8000
	@$(MAKE) --no-print-directory serve

.PHONY: serve
serve:
	@$(BIN)/python manage.py migrate --verbosity 0
	@$(BIN)/python manage.py load_content
	@$(BIN)/python manage.py collectstatic --no-input --verbosity 0
	@$(BIN)/python manage.py fetch_model smollm2 > var/fetch_model.log 2>&1 &
	@echo "Next Token is at http://127.0.0.1:$(PORT)"
	@echo "To write questions: make instructor NAME=ada, then http://127.0.0.1:$(PORT)/admin/"
	@exec $(BIN)/uvicorn quizsite.asgi:application --host 127.0.0.1 --port $(PORT) --lifespan off --log-level warning --timeout-graceful-shutdown 2

content: install  ## load the bank and the labs from their files
	$(BIN)/python manage.py migrate --verbosity 0
	$(BIN)/python manage.py load_content --prove

instructor: install  ## make an instructor's account; NAME=ada
	@$(BIN)/python manage.py migrate --verbosity 0
	@$(BIN)/python manage.py make_instructor $(NAME)

check: model  ## lint, types, import contracts, templates, migrations, content, deployment
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports --no-cache
	$(BIN)/djade --check --target-version 5.2 $$(git ls-files 'templates/*.html' 'quizsite/*.html')
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check_content $(if $(NEXT_TOKEN_ALL_TESTS),--all)
	NEXT_TOKEN_HTTPS=1 $(BIN)/python manage.py check --deploy --fail-level WARNING

model: install  ## fetch the real model, SmolLM2 135M (98 MB)
	-@$(BIN)/python manage.py fetch_model smollm2

test: check  ## everything: make check, then all tests, those of the engine with its branch coverage
	$(BIN)/pytest -n 2 -m "not real_model" tests/quizsite tests/browser
	$(BIN)/pytest --cov=generation --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=98 tests/generation
	$(BIN)/pytest -m real_model tests/quizsite tests/browser || test $$? = 5  # none of them: the model is not here

test-postgresql: install  ## the tests that touch a database, on the server of DATABASE_URL
	@test -n "$$DATABASE_URL" || { echo "DATABASE_URL is missing: .ci/with-postgresql make $@ starts a server for it" >&2; exit 1; }
	$(BIN)/pytest -n 2 -m "not real_model and not any_database" tests/quizsite tests/browser

bench: install  ## measure the engine; ratios side by side in one run
	$(BIN)/python -m tests.bench

bench-peers: model var/peers/installed  ## measure it against others on the same weights, in an environment of its own
	$(BIN)/python -m tests.bench.peers

var/peers/installed: tests/bench/peers-requirements.txt
	$(PYTHON) -m venv var/peers
	var/peers/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@
