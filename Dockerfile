# Gradient Leakage Explorer in a container: dashboard, dispatcher and workers together.
#
#   docker build -t leakage .
#   docker run --init --rm -p 127.0.0.1:8501:8501 -v leakage:/data leakage           then open http://localhost:8501
#
# --init reaps what ended workers leave behind. With an NVIDIA GPU (and the NVIDIA container toolkit) add: --gpus all
# To let others in, use compose.yaml, which puts Caddy with TLS in front: docs/class-server.md. scripts/check_image.sh tries the image.

# A Debian release is named, so that a new one is a choice and not a surprise. For the very bytes of one image name its digest as well:
# --build-arg BASE=python:3.13-slim-trixie@sha256:... (docs/updates.md).
ARG BASE=python:3.13-slim-trixie
FROM ${BASE}

LABEL org.opencontainers.image.title="Gradient Leakage Explorer" \
      org.opencontainers.image.description="What the gradients of federated learning give away about private pictures" \
      org.opencontainers.image.licenses="MIT"

# Which build of PyTorch. Empty: pip's own index, which for Linux x86-64 means CUDA (several GB; runs on a CPU too). For the small
# CPU-only build, or another CUDA version, give the index address that pytorch.org ("Start locally") names for it:
#   docker build --build-arg TORCH_INDEX=<address> -t leakage .
# torch and torchvision always come from the same place: mixed, torchvision fails on import.
ARG TORCH_INDEX=""

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONUNBUFFERED=1

WORKDIR /app

# Before the code, so that a change of code does not install everything again. All files are those of the lock, checked by their hashes;
# with TORCH_INDEX all but PyTorch and the libraries for GPUs that it brings, which that index has in builds of its own.
COPY requirements.txt requirements.lock ./
RUN if [ -n "$TORCH_INDEX" ] && [ "$(uname -m)" = x86_64 ]; then \
        awk '/^[^ #]/ { keep = !/^(torch|torchvision|triton|nvidia-[^=]*|cuda-[^=]*)==/ } keep' requirements.lock > /tmp/rest.lock \
        && grep -E '^torch(vision)?==' requirements.txt > /tmp/torch.txt \
        && pip install --no-deps --require-hashes -r /tmp/rest.lock \
        && pip install --index-url "$TORCH_INDEX" -r /tmp/torch.txt \
        && rm /tmp/rest.lock /tmp/torch.txt; \
    elif [ -n "$TORCH_INDEX" ]; then \
        grep -E '^torch(vision)?==' requirements.txt > /tmp/torch.txt \
        && pip install --index-url "$TORCH_INDEX" -r /tmp/torch.txt \
        && rm /tmp/torch.txt \
        && pip install -r requirements.txt; \
    elif [ "$(uname -m)" = x86_64 ]; then \
        pip install --require-hashes -r requirements.lock; \
    else \
        pip install -r requirements.txt; \
    fi \
    && python -c "import torch, torchvision"

# g++ compiles the steps of attacks on small networks, which are then three times as fast:
#   docker build --build-arg COMPILER=g++ -t leakage .
ARG COMPILER=""
RUN if [ -n "$COMPILER" ]; then \
        apt-get update && apt-get install --yes --no-install-recommends "$COMPILER" && rm -rf /var/lib/apt/lists/*; \
    fi

COPY . .

# The code belongs to root and is compiled here; the program runs as nobody special and writes to /data only.
RUN python -m compileall -q app.py pages leakage \
    && python -m leakage.workers.plugin_catalog \
    && useradd --create-home --uid 10001 leakage \
    && install -d -o leakage -g leakage /data

ENV LEAKAGE_HOME=/data \
    LEAKAGE_DATA=/data/datasets \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_BROWSER_SERVER_ADDRESS=localhost

USER 10001
VOLUME /data
EXPOSE 8501

# No proxy: a container may be given one that knows nothing of 127.0.0.1. Anything but status 200 raises, so the check fails.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8501/_stcore/health', timeout=4)"]

CMD ["python", "-m", "streamlit", "run", "app.py"]
