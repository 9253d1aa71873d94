"""The image and the class server: what is copied, and what can be set."""

import re
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
