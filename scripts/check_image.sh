#!/usr/bin/env bash
# Builds the image and tries it as a class server runs it: read-only, without capabilities, as user 10001. Where buildah or podman is
# missing it says so and checks nothing. The build takes minutes and about 20 GB while it lasts.
#
#   bash scripts/check_image.sh
#   BASE=<image> TORCH_INDEX=<address> bash scripts/check_image.sh      another base, another build of PyTorch
#   BUILD_ARGS="--isolation chroot" RUN_ARGS="--network host" ...       more options of buildah and podman, as inside a container
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in buildah podman; do
  if ! command -v "$tool" >/dev/null; then
    echo "The image was not checked: it needs buildah and podman (Debian, Ubuntu: apt install buildah podman)."
    exit 0
  fi
done

image=localhost/leakage:check name=leakage-check
read -ra build_args <<<"${BUILD_ARGS:-}"
read -ra run_args <<<"${RUN_ARGS:-}"

wrong() {
  podman logs --tail 40 "$name" >&2 || true
  echo "The image is not right: $1" >&2
  exit 1
}

# Only the docker format keeps the health check.
buildah build --format docker --layers ${BASE:+--build-arg "BASE=$BASE"} ${TORCH_INDEX:+--build-arg "TORCH_INDEX=$TORCH_INDEX"} \
  "${build_args[@]}" --tag "$image" .
size=$(podman image inspect --format '{{.Size}}' "$image")

trap 'podman rm --force --volumes "$name" >/dev/null 2>&1 || true' EXIT
podman rm --force --volumes "$name" >/dev/null 2>&1 || true
started=$SECONDS
podman run --detach --init --name "$name" --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
  "${run_args[@]}" "$image" >/dev/null

until podman healthcheck run "$name" >/dev/null 2>&1; do
  [[ $(podman inspect --format '{{.State.Running}}' "$name") == true ]] || wrong "it ended by itself."
  ((SECONDS - started < 120)) || wrong "its health check did not pass within two minutes."
  sleep 1
done
healthy=$((SECONDS - started))

[[ $(podman exec "$name" id -u) == 10001 ]] || wrong "it does not run as user 10001."
! podman exec "$name" sh -c ': > /app/written' 2>/dev/null || wrong "it can write to /app."
podman exec "$name" sh -c ': > /data/written && rm /data/written' || wrong "it cannot write to /data."
for left_out in docs benchmarks tests .git; do
  ! podman exec "$name" test -e "/app/$left_out" || wrong "$left_out is in it."
done
podman exec -i "$name" python - <<'PYTHON' || wrong "a page or a script of it does not come."
from urllib.request import ProxyHandler, build_opener

ask = build_opener(ProxyHandler({}))
for path in ("/", "/learn", "/api/plotly.min.js"):
    with ask.open(f"http://127.0.0.1:8501{path}", timeout=20) as answer:
        assert answer.status == 200, path
        assert len(answer.read()) > 500, path
PYTHON
podman exec -i "$name" sh -c 'cat > /tmp/asked.json && python -m leakage run /tmp/asked.json --out /tmp/results' \
  <<<'{"attack": {"id": "dlg", "fields": {"steps": 3}}}' || wrong "it cannot attack."

before=$(date +%s%N)
podman stop --time 10 "$name" >/dev/null
stopped=$((($(date +%s%N) - before) / 1000000))
((stopped < 9000)) || wrong "it had to be killed."

printf 'The image is right: %d.%d GB, healthy after %d s, read-only as user 10001, stopped in %d.%d s.\n' \
  $((size / 10**9)) $((size / 10**8 % 10)) "$healthy" $((stopped / 1000)) $((stopped / 100 % 10))
