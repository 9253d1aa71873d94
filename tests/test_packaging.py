"""The installed package: its files, its data folder, its dependencies, and its command."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module, util
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import leakage
from leakage import settings
from leakage.__main__ import main
from leakage.engine import accounting
from leakage.evaluation import perceptual
from leakage.settings import ROOT
from leakage.web import launch

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CARRIED = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]


# ---------------------------------------------------------------- what it needs


def test_every_dependency_is_pinned_within_its_range_and_nothing_else_is() -> None:
    project = PROJECT["project"]
    asked = {need.name: need.specifier for need in map(Requirement, (*project["dependencies"], *project["optional-dependencies"]["app"]))}
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    assert set(pins) == set(asked)
    for name, version in pins.items():
        assert asked[name].contains(Version(version)), f"{name} {version} is not in {asked[name]}"


def test_ray_is_tested_as_it_is_pinned_and_an_extra_that_nobody_else_needs() -> None:
    (asked,) = map(Requirement, PROJECT["project"]["optional-dependencies"]["ray"])
    pins = [Requirement(line) for line in (ROOT / "requirements-dev.txt").read_text().splitlines() if line.startswith("ray")]
    assert [(pin.name, pin.extras) for pin in pins] == [(asked.name, asked.extras)] == [("ray", {"client"})]
    (pin,) = pins[0].specifier
    assert asked.specifier.contains(pin.version)
    assert "ray==" not in (ROOT / "requirements.lock").read_text()


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_the_lock_file_holds_every_pin_and_for_each_package_its_hashes(name: str) -> None:
    pins, locked = (
        dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / f"{name}{end}").read_text(), re.MULTILINE)) for end in (".txt", ".lock")
    )
    assert pins
    assert {pin: locked.get(pin) for pin in pins} == pins, "run `make lock`"
    text = (ROOT / f"{name}.lock").read_text()
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert [entry.split()[0] for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)] == []
    assert "://" not in text, "it names an index or a file outside of it"


def test_both_lock_files_agree() -> None:
    first, second = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert first.items() <= second.items()


def test_the_version_stands_in_one_file_that_the_wheel_takes_it_from() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    file = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{leakage.__version__}"\n' in file.read_text()
    assert Version(leakage.__version__) >= Version("0.2.0")
    assert "__version__" in dir(leakage)


def test_the_command_is_a_function() -> None:
    module, _, name = PROJECT["project"]["scripts"]["gradient-leakage"].partition(":")
    assert callable(getattr(import_module(module), name))


# ---------------------------------------------------------------- in a checkout


def test_a_checkout_is_its_own_root_and_keeps_its_runs_beside_app_py() -> None:
    assert not settings.INSTALLED
    assert (ROOT / "app.py").exists()
    assert settings.default_home() == ROOT / ".leakage"


def test_the_dashboard_starts_in_the_root_with_the_folders_that_were_meant_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called = list[tuple[list[str], dict[str, str], Path]]()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAKAGE_HOME", "runs")
    monkeypatch.setenv("LEAKAGE_DATA", "sets")
    monkeypatch.setattr(os, "execve", lambda _file, words, environment: called.append((words, environment, Path.cwd())))
    assert main(["app", "--port", "8777", "--headless"]) == 0
    words, environment, folder = called[0]
    assert words[1:] == ["-m", "streamlit", "run", "app.py", "--server.address", "127.0.0.1", "--server.port", "8777"]
    assert (environment["LEAKAGE_HOME"], environment["LEAKAGE_DATA"]) == (str(tmp_path / "runs"), str(tmp_path / "sets"))
    assert folder == ROOT, "Streamlit would not find .streamlit/config.toml"


def test_without_streamlit_the_command_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(util, "find_spec", lambda _name: None)
    assert main(["app", "--headless"]) == 1
    assert caplog.messages == [launch.MISSING]
    assert "gradient-leakage-explorer[app]" in launch.MISSING


# ---------------------------------------------------------------- installed


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the one into which pip unpacks the wheel."""
    folder = tmp_path_factory.mktemp("site-packages")
    shutil.copytree(ROOT / "leakage", folder / "leakage", ignore=shutil.ignore_patterns("__pycache__"))
    for ours, theirs in CARRIED.items():
        (folder / theirs).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / ours).is_dir() else shutil.copy)(ROOT / ours, folder / theirs)
    return folder


def python(site_packages: Path, *words: str, cwd: Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEAKAGE_")}
    return subprocess.run(
        [sys.executable, "-B", *words],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(site_packages), "XDG_DATA_HOME": str(cwd / "share")},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_an_installed_package_carries_the_dashboard_and_keeps_its_runs_elsewhere(site_packages: Path, tmp_path: Path) -> None:
    script = (
        "from leakage.data.checkpoints import cards; from leakage.settings import ROOT, settings; print(ROOT, settings().home, *cards())"
    )
    done = python(site_packages, "-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    root, home, *cards = done.stdout.split()
    assert Path(root).is_relative_to(site_packages)
    assert not Path(home).is_relative_to(site_packages)
    assert Path(home).name == "gradient-leakage-explorer"
    assert "lenet-mnist" in cards
    for name in ("app.py", "pages/lab.py", "assets/style.css", "assets/lessons/runs/r02.json", ".streamlit/config.toml"):
        assert (Path(root) / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.parametrize("command", ["docs", "record", "learn"])
@pytest.mark.long
def test_what_writes_into_a_checkout_says_so(command: str, site_packages: Path, tmp_path: Path) -> None:
    before = set(site_packages.rglob("*"))
    done = python(site_packages, "-m", "leakage", command, *(["--claims"] if command == "learn" else []), cwd=tmp_path)
    assert done.returncode == 1
    assert f"run `make {command}` in a checkout" in done.stderr
    assert set(site_packages.rglob("*")) == before


def test_the_package_says_that_it_is_typed(site_packages: Path) -> None:
    assert (site_packages / "leakage" / "py.typed").is_file()


@pytest.mark.slow
def test_a_file_that_uses_the_package_is_checked_strictly_against_it(site_packages: Path, tmp_path: Path) -> None:
    """Right use passes, wrong use is found. It takes a minute: mypy reads torch."""
    right = "import leakage, torch\n\ndef psnr(model: torch.nn.Module, x: torch.Tensor) -> object:\n"
    right += "    found: leakage.Result = leakage.attack(model, x, torch.tensor([1]))\n"
    (tmp_path / "right.py").write_text(f"{right}    return found.scores[leakage.__version__]\n")
    (tmp_path / "wrong.py").write_text(f"{right}    leakage.attack(model, x, sed=2)\n    return found.nothing\n")
    check = ("-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"))
    assert "Success" in python(site_packages, *check, "right.py", cwd=tmp_path, timeout=500).stdout
    wrong = python(site_packages, *check, "wrong.py", cwd=tmp_path, timeout=500).stdout
    assert '"Result" has no attribute "nothing"' in wrong
    assert 'Unexpected keyword argument "sed" for "attack"' in wrong


EXTRAS = ("opacus", "lpips", "tqdm", "streamlit", "plotly", "jinja2", "ray", "pandas")  # what the bare package does without


def test_the_bare_package_attacks_without_its_extras(site_packages: Path, tmp_path: Path) -> None:
    script = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS}))  # as if they were not installed
import torch, leakage
from leakage.evaluation.perceptual import perceptual
model, x = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5)), torch.rand(1, 3, 4, 4)
found = leakage.attack(model, x, torch.tensor([2]), attack="linear_layer", defenses=["dp_sgd"])
print(found.labels, found.privacy.assumption, perceptual().words, sep="|")
"""
    done = python(site_packages, "-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    labels, budget, off = done.stdout.strip().split("|")
    assert labels.startswith("[")
    assert budget == accounting.MISSING
    assert off.startswith("LPIPS off: ")


def test_what_the_bare_package_does_without_is_an_extra_and_part_of_the_dashboard() -> None:
    extras = {name: {Requirement(one).name for one in needs} for name, needs in PROJECT["project"]["optional-dependencies"].items()}
    bare = {Requirement(one).name for one in PROJECT["project"]["dependencies"]}
    assert (extras["lpips"], extras["privacy"]) == ({"lpips"}, {"opacus"})
    assert {"lpips", "opacus"} <= extras["app"]
    assert not bare & {"lpips", "opacus"}
    for sentence, extra in ((accounting.MISSING, "privacy"), (inspect.getsource(perceptual), "lpips")):
        assert f'pip install "gradient-leakage-explorer[{extra}]"' in sentence


def test_nothing_that_ships_is_ignored_by_git() -> None:
    """The build of the wheel leaves out the files in .gitignore."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the repository")
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines() == []


def test_the_wheel_carries_the_whole_package_and_whole_folders() -> None:
    """Templates, scripts and prepared experiments travel with it: nothing is picked out or left out."""
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel.keys() == {"packages", "force-include"}
    assert wheel["packages"] == ["leakage"]
    assert CARRIED.keys() == {"app.py", "pages", "assets", ".streamlit/config.toml"}
    assert (ROOT / "assets" / "prepared.json").is_file()
