"""The image and the class server: which files are copied, and which settings exist."""

import re
import subprocess
import tomllib

from leakage.settings import ROOT

IGNORED = {line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")}
COMPOSE = (ROOT / "compose.yaml").read_text()
GUIDE = (ROOT / "docs" / "class-server.md").read_text()
CADDY = (ROOT / "Caddyfile").read_text()


def test_the_image_holds_what_a_wheel_carries_and_neither_docs_nor_benchmarks() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    carried = {name.split("/")[0] for name in wheel["force-include"]} | set(wheel["packages"]) | {"requirements.txt", "requirements.lock"}
    assert not carried & IGNORED
    assert {"docs", "benchmarks", "tests", ".git", ".env"} <= IGNORED


def test_everything_that_compose_reads_from_env_is_in_the_guide() -> None:
    read = set(re.findall(r"\$\{(\w+)", COMPOSE))
    table = GUIDE.split("## What can be set in .env")[1].split("\n## ")[0]
    assert read == set(re.findall(r"`([A-Z]+_[A-Z_]+)`", table))
    for name, default in re.findall(r"\$\{(\w+):-(\w+)\}", COMPOSE):
        (line,) = [line for line in table.splitlines() if f"`{name}`" in line.split(" | ")[0]]
        assert default in line.split(" | ")[-1], f"{name}: {default} is not in: {line}"


def test_caddy_is_told_the_three_things_that_it_asks_for() -> None:
    asked = set(re.findall(r"\{\$(\w+)", CADDY))
    caddy = COMPOSE.split("\n  caddy:\n")[1]
    assert asked == {"LEAKAGE_HOST", "LEAKAGE_TLS", "LEAKAGE_SERVER"}
    assert asked == set(re.findall(r"^      (LEAKAGE_\w+):", caddy, re.MULTILINE))
    port = re.search(r"^EXPOSE (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert port
    assert f"LEAKAGE_SERVER: leakage:{port[1]}" in caddy


def test_the_base_image_names_a_release_of_python_and_of_debian() -> None:
    assert re.search(r"^ARG BASE=python:3\.\d+-slim-[a-z]+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def test_what_the_image_may_take_of_the_machine_is_limited_for_both_services() -> None:
    limits, *services = re.split(r"^x-limits: &limits|^  (?=\w+:$)", COMPOSE.split("\nvolumes:\n")[0], flags=re.MULTILINE)[1:]
    for line in (
        "pids_limit: 1024",
        "nofile: {soft: 16384, hard: 16384}",
        'options: {max-size: 10m, max-file: "3"}',
        "read_only: true",
        "cap_drop: [ALL]",
    ):
        assert line in limits
    assert [service.split(":")[0] for service in services] == ["leakage", "caddy"]
    assert all("\n    <<: *limits\n" in service for service in services)


def test_browsers_are_told_to_come_by_tls_only() -> None:
    assert re.search(r'^\theader Strict-Transport-Security "max-age=15552000"$', CADDY, re.MULTILINE)


def test_with_an_index_of_its_own_for_torch_all_else_is_installed_by_hash() -> None:
    dockerfile, makefile = (ROOT / "Dockerfile").read_text(), (ROOT / "Makefile").read_text()
    (program,) = re.findall(r"awk '(.*)' requirements.lock", dockerfile)
    assert f"REST = {program}".replace("#", "\\#") in makefile
    assert "--no-deps --require-hashes -r /tmp/rest.lock" in dockerfile
    assert "--no-deps --require-hashes -r $(VENV)/rest.lock" in makefile
    rest = subprocess.run(["awk", program, "requirements.lock"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^([a-z0-9-]+)==", rest, re.MULTILINE))
    every = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert {"torch", "torchvision", "triton"} <= every - names
    assert all(name in ("torch", "torchvision", "triton") or name.startswith(("nvidia-", "cuda-")) for name in every - names)
    assert {"streamlit", "pillow", "numpy"} <= names
    assert all("--hash=sha256:" in block for block in re.split(r"^(?=[a-z])", rest, flags=re.MULTILINE) if block.strip())
