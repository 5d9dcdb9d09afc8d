# A thin layer over CMake: `make help` lists the targets. A fresh Debian 12 needs nothing else than `make test`.
PREFIX ?= /usr/local
PROGRAM_PREFIX ?=
BUILD ?= build
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60

# The generator counts only when the folder is new; an existing one keeps its own.
CONFIGURE = CMAKE_GENERATOR=$$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles') cmake -S .
COMPILE = cmake --build $(1) -j $(JOBS)
CTEST = ctest --output-on-failure

.PHONY: all setup demo test test-slow check asan fuzz bench install format tidy clean help
.NOTPARALLEL:

all: ## build the tools into build/bin
	@command -v cmake >/dev/null || { echo "make: cmake is missing: 'make setup' installs what the build needs" >&2; exit 1; }
	@$(CONFIGURE) -B $(BUILD) --log-level=WARNING
	@$(call COMPILE,$(BUILD))

setup: ## install the packages that building and testing need (Debian; sudo where needed)
	@scripts/setup build

demo: setup all ## set up, build, then train a small model on the sample corpus and generate from it
	@QUIPU_BIN=$(BUILD)/bin scripts/demo.sh

test: setup all ## set up, build and run the tests
	@$(CTEST) --test-dir $(BUILD)

test-slow: setup all ## the tests that take minutes (kill -9 while saving, long streams)
	@QUIPU_BIN=$(abspath $(BUILD))/bin scripts/test_slow.sh $(BUILD)

check: ## layers, sizes, format, warnings, man pages in step, no machine paths
	@scripts/setup build
	@scripts/setup check || echo "make check: going on without these; a check that needs one says so" >&2
	@scripts/check_layers.sh
	@scripts/check_sizes.sh
	@scripts/check_paths.sh
	@scripts/check_format.sh
	@$(CONFIGURE) -B $(BUILD) -DQUIPU_WERROR=ON --log-level=WARNING
	@$(call COMPILE,$(BUILD))
	@scripts/check_manuals.sh $(BUILD)/bin
	@scripts/check_readme.sh $(BUILD)/bin
	@echo "make check: all good"

asan: setup ## the tests under the address and undefined-behaviour sanitizers, in build-asan
	@$(CONFIGURE) -B build-asan -DQUIPU_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo --log-level=WARNING
	@$(call COMPILE,build-asan)
	@ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  LSAN_OPTIONS=print_suppressions=0:suppressions=$(CURDIR)/scripts/lsan.supp $(CTEST) --test-dir build-asan

fuzz: ## fuzz the readers of foreign files, FUZZ_SECONDS (60) each, in build-fuzz; needs clang
	@scripts/setup build fuzz
	@$(CONFIGURE) -B build-fuzz -DQUIPU_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang --log-level=WARNING
	@$(call COMPILE,build-fuzz)
	@scripts/fuzz.sh build-fuzz $(FUZZ_SECONDS)

bench: all ## run the benchmarks of test/bench
	@QUIPU_BIN=$(abspath $(BUILD))/bin scripts/bench.sh

install: all ## install into PREFIX (/usr/local), the tools' names preceded by PROGRAM_PREFIX (say quipu-)
	@PROGRAM_PREFIX='$(PROGRAM_PREFIX)' cmake --install $(BUILD) --prefix '$(abspath $(PREFIX))'

format: ## clang-format every source in place
	@scripts/check_format.sh --fix

tidy: ## clang-tidy over lib and apps (slow; advice, not a gate)
	@scripts/setup build tidy
	@$(CONFIGURE) -B $(BUILD) --log-level=WARNING
	@run-clang-tidy-14 -quiet -j $(JOBS) -p $(BUILD) '$(CURDIR)/(lib|apps)/'

clean: ## remove the build folders
	@rm -rf $(BUILD) build-asan build-fuzz

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile
