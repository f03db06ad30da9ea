# Everything a contributor types. The work is in tools/stages.py, which prints each command it runs.
PYTHON ?= python3
FUZZ_SECONDS ?= 1200
export PYTHONUNBUFFERED := 1

.NOTPARALLEL:
.PHONY: help demo test test-long bench format lint package clean deps deps-demo

help:
	@echo "make demo       the whole job on real data: pack, serve, train, kill, resume, audit"
	@echo "make test       linters, C++ tests under sanitizers, fuzzers, Python tests (20 minutes at most)"
	@echo "make test-long  the same with slow tests and FUZZ_SECONDS=1200 for each fuzzer"
	@echo "make bench      measures against installed peers, prints the table, writes JSON"
	@echo "make format     rewrites C++ and Python sources as the linters want them"
	@echo "make lint       layers, format, ruff, mypy and clang-tidy alone"
	@echo "make package    installs the package into .venv"
	@echo "make clean      removes build/, .venv and caches"

deps:
	@tools/install_deps.sh test

deps-demo:
	@tools/install_deps.sh demo

demo: deps-demo package
	@test -x demo/run || { echo "demo/run is missing: this checkout has no demo" >&2; exit 1; }
	PATH="$(CURDIR)/.venv/bin:$$PATH" demo/run

test: deps
	@$(PYTHON) tools/stages.py test

test-long: deps
	@$(PYTHON) tools/stages.py test-long --fuzz-seconds $(FUZZ_SECONDS)

bench: deps package
	@test -x bench/run || { echo "bench/run is missing: this checkout has no benchmarks" >&2; exit 1; }
	PATH="$(CURDIR)/.venv/bin:$$PATH" bench/run

format:
	@$(PYTHON) tools/stages.py format

lint: deps
	@$(PYTHON) tools/stages.py lint

package:
	@tools/install_deps.sh build
	@$(PYTHON) tools/stages.py package

clean:
	rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis python/headrace/_core.pyi
	find . -name __pycache__ -prune -exec rm -rf {} +
