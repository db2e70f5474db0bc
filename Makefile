# The commands of a developer and of .ci/run. The build itself is CMake's (CMakePresets.json).
.DEFAULT_GOAL := help
.PHONY: FORCE help deps build assay check check-browser check-clients check-long configure-sanitize sanitize tsan fuzz format \
	format-check tidy clean
# Prerequisites run in the order written: install, then build, then use.
.NOTPARALLEL:

export JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
FUZZ_SECONDS ?= 60
CTEST := ctest --output-on-failure --no-tests=error -j$(TEST_JOBS)

# CMake reads this variable when it configures a fresh build folder.
ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
endif

# Names and lines in the sanitizers' reports; LLVM's own symbolizer is not among the packages.
export ASAN_OPTIONS ?= external_symbolizer_path=$(shell command -v addr2line)
export UBSAN_OPTIONS ?= print_stacktrace=1:$(ASAN_OPTIONS)

# make assay FP8=1 adds both checkpoints with their routed experts in FP8, repacked by cupel itself.
MODELS := models/tiny-v4-preview models/tiny-v4-0731
FP8_MODELS := $(if $(FP8),$(patsubst models/%,build/models/%-fp8,$(MODELS)))

ASSAY := build/release/bin/cupel assay wordmath \
	--model $(MODELS) $(FP8_MODELS) \
	--attention-backend packed,unified --reference tiny-v4-preview/unified --margin 1

help:
	@echo 'make assay         install what is needed, build, assay both bundled checkpoints'
	@echo '                   (FP8=1: also as FP8 repacks, made in build/models)'
	@echo 'make check         install what is needed, build, run all tests'
	@echo 'make check-browser the HTML report and the page of the server in headless Chromium, at the width of a laptop and a phone'
	@echo 'make check-clients real clients from PyPI against cupel serve'
	@echo 'make check-long    the full simulations, contract, soak and load, about half an hour on two cores'
	@echo 'make deps          install the packages (Debian 12, Ubuntu 24.04; root or sudo)'
	@echo 'make build         release build in build/release'
	@echo 'make sanitize      fast tests under the address and undefined-behaviour sanitizers'
	@echo 'make tsan          threads of the engine under the thread sanitizer'
	@echo 'make fuzz          every fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS) seconds'
	@echo 'make format        format the sources; format-check only looks'
	@echo 'make tidy          clang-tidy on src'
	@echo 'make clean         remove build'
	@echo 'JOBS=$(JOBS) and TEST_JOBS=$(TEST_JOBS) set how much runs at once.'
	@echo 'check-browser, sanitize, fuzz, format and tidy need scripts/install-deps.sh --ci.'

deps:
	scripts/install-deps.sh

build:
	cmake --preset release
	cmake --build --preset release -j$(JOBS)

# 0, 1 and 2 are verdicts (pass, regression, inconclusive): every cell completed. Anything else is
# a failure of the run.
assay: deps
	cmake --preset release
	cmake --build --preset release -j$(JOBS) --target cupel
	$(if $(FP8),$(MAKE) $(FP8_MODELS))
	@echo '$(ASSAY)'; \
	$(ASSAY); code=$$?; \
	case $$code in 0|1|2) ;; *) echo "make assay: not completed, exit code $$code" >&2; exit $$code;; esac

# Made anew each time: the program may have changed.
FORCE:
build/models/%-fp8: models/% FORCE
	mkdir -p build/models
	rm -rf $@
	build/release/bin/cupel repack --experts fp8 --verify $< $@

check: deps build
	$(CTEST) --test-dir build/release -LE long

# Needs Chromium, and fails without it. Pages and screenshots are left in build/browser.
check-browser: build
	python3 tests/browser/check_report_pages.py build/release/bin/cupel build/browser
	python3 tests/browser/check_server_page.py build/release/bin/cupel build/browser-server

# Needs PyPI. Logs are left in build/clients-out.
check-clients: build
	python3 -m venv build/clients
	build/clients/bin/pip install -q -r tests/clients/requirements.txt
	build/clients/bin/python tests/clients/check_clients.py build/release/bin/cupel build/clients-out

# The last full outputs are kept: docs/calibration.log, docs/planted.log, docs/contract.log.
check-long: deps build
	cmake --build --preset release -j$(JOBS) --target long_tests
	$(CTEST) --verbose --test-dir build/release -L long

configure-sanitize:
	clangxx=$$(scripts/llvm-tool.sh clang++) && \
	cmake --preset sanitize -DCMAKE_CXX_COMPILER=$$clangxx

sanitize: configure-sanitize
	cmake --build --preset sanitize -j$(JOBS)
	$(CTEST) --test-dir build/sanitize -L fast

# The soak of the engine's thread, 1,000 requests, and what the server's threads share.
tsan:
	clangxx=$$(scripts/llvm-tool.sh clang++) && \
	cmake --preset tsan -DCMAKE_CXX_COMPILER=$$clangxx
	cmake --build --preset tsan -j$(JOBS)
	$(CTEST) --test-dir build/tsan -R 'EngineThread|Soak|FormCache'

fuzz: configure-sanitize
	cmake --build --preset sanitize -j$(JOBS) --target fuzzers
	scripts/fuzz.sh $(FUZZ_SECONDS)

format:
	scripts/format.sh

format-check:
	scripts/format.sh --check

tidy:
	cmake --preset release
	scripts/tidy.sh

clean:
	rm -rf build
