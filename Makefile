# Set-up and everyday commands; `make` alone lists them. They need GNU make 3.81 or newer, bash, and Python 3.11 or newer.
# The first call sets up .venv (PyTorch is large: some minutes); later calls set it up again only when a requirements file changed.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

VENV := .venv
PEER := .venv-bench
AUDITED := $(VENV)/audited
FEDERATED := $(VENV)/federated
PY := $(VENV)/bin/python
PEER_PY := $(PEER)/bin/python

HOST ?= 127.0.0.1
PORT ?= 8501
# With HEADLESS=1, or a CI variable, no browser is opened.
HEADLESS ?= $(CI)
# Additional arguments for streamlit, pytest or the benchmark: make test ARGS="-k store"
ARGS ?=
# The Python to use: make run PYTHON=/opt/python3.12/bin/python3
PYTHON ?=
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3
# Another package index for PyTorch, for example that of its CPU-only builds: make run TORCH_INDEX=<address>
TORCH_INDEX ?=
TORCH_PINS = $(shell grep -E '^torch(vision)?==' requirements.txt)
# The lock files pin every package with its hashes, for Linux on x86-64 with pip's own index. Elsewhere requirements.txt pins, and pip chooses the rest.
LOCKED := $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m))
LOCK = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock"
# With TORCH_INDEX the lock holds for all packages but PyTorch and its GPU libraries: that index has other builds.
REST = /^[^ \#]/ { keep = !/^(torch|torchvision|triton|nvidia-[^=]*|cuda-[^=]*)==/ } keep
from = $(if $(and $(LOCKED),$(if $(TORCH_INDEX),,yes)),--require-hashes -r $(1).lock,-r $(1).txt)

# Keep compiled modules even if the environment forbids it: otherwise each of dozens of processes compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

# Memory in large pages, where the system leaves the choice to a program: where a new page of memory costs much time, up to half of a run.
export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1

# One thread for each process. Tests that must not run at the same time form chains (tests/support/scheduling.py): two processes run such a chain each,
# which waits half of its time, and three processes run all other tests.
PARALLEL := --dist loadscope --numprocesses
QUICK := not slow and not grid and not long and not browser and not processes

.PHONY: help run class quick test check bench record generator learn site docs lock clean

help:
	@awk -F ' *## ' '/^[a-z]+:.* ## / { split($$1, rule, ":"); printf "  make %-8s %s\n", rule[1], $$2 }' Makefile

run: $(VENV)/.run-ready ## start the dashboard on http://127.0.0.1:8501 and open a browser (PORT=, HOST=, HEADLESS=1)
	@$(if $(filter-out 0 false no,$(HEADLESS)),,$(PY) -m leakage.web.launch $(HOST) $(PORT) </dev/null >/dev/null 2>&1 &) \
	exec $(PY) -m streamlit run app.py --server.address $(HOST) --server.port $(PORT) $(ARGS) </dev/null

class: ## start it for a class whose phones follow a lesson: other computers reach its rooms only (CLASS_OPEN=1: the whole program)
	@$(MAKE) --no-print-directory run HOST=$(if $(filter command line,$(origin HOST)),$(HOST),0.0.0.0) LEAKAGE_CLASS=$(if $(CLASS_OPEN),0,1)

quick: $(VENV)/.dev-ready ## run the tests without a browser, other processes and long computations (ARGS="-k store")
	@OMP_NUM_THREADS=1 $(PY) -m pytest $(PARALLEL) 2 -m "$(QUICK)" $(ARGS)

test: $(VENV)/.dev-ready $(AUDITED)/.ready $(FEDERATED)/.ready ## run all tests (ARGS="-m grid": every combination; ARGS="-m slow": the published numbers)
	@browser=$$(bash scripts/browser.sh) && OMP_NUM_THREADS=1 LEAKAGE_BROWSER="$$browser" $(PY) -m pytest $(PARALLEL) 5 $(ARGS)

check: $(VENV)/.dev-ready ## check lint, format, types and imports; with Node.js also the JavaScript
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	@bash scripts/check_js.sh
	@if command -v hadolint >/dev/null; then hadolint Dockerfile; else echo "The Dockerfile was not checked: it needs hadolint."; fi

bench: $(VENV)/.dev-ready $(PEER)/.ready ## compare our speed with the package `breaching`, and measure a class server under load
	$(PY) benchmarks/speed/run.py --peer $(PEER_PY) $(ARGS)
	$(if $(ARGS),,$(PY) benchmarks/load/class_server.py)
	$(if $(ARGS),,$(PY) benchmarks/load/room.py)

record: $(VENV)/.run-ready ## make the missing recordings in assets/ (ARGS="--only r02 g07", ARGS="--check --jobs 2")
	$(PY) -m leakage record $(ARGS)

generator: $(VENV)/.run-ready ## train the generator of digits in assets/generators again, in three minutes, with MNIST's training pictures
	$(PY) -m scripts.train_generator

learn: $(VENV)/.run-ready ## recompute every number that the lessons claim (ARGS="--write" replaces the numbers)
	$(PY) -m leakage learn --claims $(ARGS)

site: $(VENV)/$(if $(PDF),.dev-ready,.run-ready) ## write the lessons as a folder that opens by double click: site/ (PDF=1, ARGS="--out FOLDER --address URL")
	$(PY) -m leakage site $(if $(PDF),--pdf) $(ARGS)

docs: $(VENV)/.dev-ready ## write the generated docs: docs/plugins.md, docs/schema/, the events as TypeScript types, and docs/api/ for a browser
	$(PY) -m leakage docs $(ARGS)
	$(PY) scripts/api_docs.py

lock: $(VENV)/.dev-ready ## update requirements.lock and requirements-dev.lock after a changed pin (ARGS="--upgrade": the newest of all other packages)
	$(LOCK) requirements.txt --output-file requirements.lock $(ARGS)
	$(LOCK) requirements-dev.txt --constraints requirements.lock --output-file requirements-dev.lock $(ARGS)

clean: ## remove the virtual environments, node_modules and caches; your runs in .leakage stay
	rm -rf $(VENV) $(PEER) node_modules .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---------------------------------------------------------------- set-up

$(VENV)/.run-ready: requirements.txt requirements.lock $(PY)
	$(call install,$(call from,requirements))
	@touch $@

$(VENV)/.dev-ready: requirements-dev.txt requirements-dev.lock requirements.txt $(PY)
	$(call install,$(call from,requirements-dev))
	@touch $(VENV)/.run-ready $@

# A .venv may also be made by hand, by another tool (without pip), or by a Python that is too old.
# --no-compile: Python compiles a module when it is first imported; most of the modules installed never are, and all together take a minute.
define install
@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "$(VENV) holds $$($(PY) --version), and Python 3.11 or newer is needed: delete $(VENV) and run make again." >&2; exit 1; }
@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade
@echo "Installing what is missing in $(VENV); the first time this takes some minutes."
$(if $(and $(LOCKED),$(TORCH_INDEX)),@awk '$(REST)' requirements.lock > $(VENV)/rest.lock
@$(PY) -m pip install --disable-pip-version-check --no-deps --require-hashes -r $(VENV)/rest.lock)
$(if $(TORCH_INDEX),@$(PY) -m pip install --index-url $(TORCH_INDEX) $(TORCH_PINS))
@$(PY) -m pip install --disable-pip-version-check --no-compile $(1)
@$(PY) -m leakage.workers.plugin_catalog || true
endef

$(PY):
	@found=; bare=; \
	for python in $(PYTHONS); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  if "$$python" -c 'import ensurepip, venv' 2>/dev/null; then found=$$python; break; fi; \
	  bare=$${bare:-$$python}; \
	done; \
	if [[ -z $$found && -n $$bare ]]; then \
	  package=$$("$$bare" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	  if [[ $$(id -u) == 0 ]] && command -v apt-get >/dev/null; then \
	    echo "$$bare comes without its venv module: installing $$package with apt." >&2; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$$package"; } </dev/null >&2 && found=$$bare; \
	  fi; \
	  if [[ -z $$found ]]; then \
	    echo "$$bare comes without its venv module: install it (Debian, Ubuntu: apt install $$package), then run make again." >&2; exit 1; \
	  fi; \
	fi; \
	if [[ -z $$found ]]; then \
	  echo "Python 3.11 or newer is needed, and none of $(strip $(PYTHONS)) is one: install it, or name it with make PYTHON=/path/to/python3." >&2; \
	  exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version)." >&2; \
	"$$found" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

# The peer has its own environment. breaching 0.1.2 names no versions and requires lpips, which its attacks never import: so it is installed with
# --no-deps, beside the packages that `import breaching` needs.
PEER_PINS := torch==2.15.0 torchvision==0.29.2 numpy==2.4.6 scipy==1.17.1 pillow==13.0.0 hydra-core==1.3.8

$(PEER)/.ready: Makefile $(PY)
	@[[ -x $(PEER_PY) ]] || $(PY) -m venv --clear $(PEER)
	@echo "Installing what is missing in $(PEER); the first time this takes some minutes."
	$(if $(TORCH_INDEX),@$(PEER_PY) -m pip install --index-url $(TORCH_INDEX) $(TORCH_PINS))
	@$(PEER_PY) -m pip install --disable-pip-version-check $(PEER_PINS)
	@$(PEER_PY) -m pip install --disable-pip-version-check --no-deps breaching==0.1.2
	@touch $@

# timm's and MONAI's networks, which are audited: without what they require, of which these networks need only what is here.
$(AUDITED)/.ready: Makefile $(VENV)/.dev-ready
	@$(PY) -m pip install --disable-pip-version-check --no-deps --upgrade --target $(AUDITED) timm==1.0.31 monai==1.6.1
	@touch $@

# Flower and NVFlare, whose clients the adapters record, need other versions of protobuf, ray and uvicorn than the project. So they have an
# environment of their own, where a .pth file appends the project's packages behind theirs, for torch.
FEDERATED_PINS := 'flwr[simulation]==1.42.0' ray==2.55.1 nvflare==2.9.0
PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))

$(FEDERATED)/.ready: Makefile $(VENV)/.dev-ready
	@$(PY) -m venv --clear $(FEDERATED)
	@$(FEDERATED)/bin/python -m pip install --disable-pip-version-check --no-compile $(FEDERATED_PINS)
	@$(PY) -c '$(PURELIB)' > "$$($(FEDERATED)/bin/python -c '$(PURELIB)')/project.pth"
	@touch $@
