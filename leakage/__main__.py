"""The command line, `gradient-leakage` or `python -m leakage`: the same engine without a page, and what starts the pages."""

import argparse
import importlib.util
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from leakage.data import checkpoints
from leakage.data.fetch import NAMES
from leakage.results import admin
from leakage.results.intervals import success_words
from leakage.runs.event_types import TYPES, declarations
from leakage.settings import INSTALLED, ROOT, settings
from leakage.spec import catalog
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Experiment, SpecError, parse
from leakage.spec.syntax import SYNTAXES
from leakage.spec.words import RECOGNIZABLE
from leakage.web import launch
from leakage.workers import plugin_catalog, training_commands

ONLY_IN_A_CHECKOUT = "`{0}` writes into the project's source tree, and this is an installed package: run `make {0}` in a checkout."
log = logging.getLogger("leakage")


def command() -> int:
    """What `gradient-leakage` and `python -m leakage` do with the words behind them."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    return main(sys.argv[1:])


def main(arguments: list[str]) -> int:
    """Answer 0, or 1 after a sentence saying what was wrong."""
    name = "gradient-leakage" if Path(sys.argv[0]).name.startswith("gradient-leakage") else "python -m leakage"
    parser = argparse.ArgumentParser(prog=name, description="Attack, defend and watch what the gradients of federated learning give away.")
    commands = parser.add_subparsers(dest="command", required=True)
    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--host", default="127.0.0.1", help="the address to listen on; default 127.0.0.1, this machine only")
    app.add_argument("--port", type=int, default=8501, help="default 8501")
    app.add_argument("--headless", action="store_true", help="open no browser")
    run = commands.add_parser("run", help="run an experiment file and write frames, metrics.json and final.png")
    run.add_argument("experiment", type=Path, help="a JSON file, as the page's download gives it")
    run.add_argument("--out", type=Path, required=True, help="folder for the results")
    run.add_argument("--seeds", type=int, default=1, help="so many runs, from the experiment's seed on, and how often the attack succeeds")
    training_commands.options(commands)
    evaluate = commands.add_parser("evaluate", help="accuracy of checkpoints on the whole test sets, beside what their cards say")
    evaluate.add_argument("checkpoint", nargs="*", help="ids of checkpoints; default: all on this machine")
    fetch = commands.add_parser("fetch", help="download a data set, or a network for LPIPS, where a connection allows")
    fetch.add_argument("name", choices=NAMES)
    record = commands.add_parser("record", help="make the recordings in assets/ that are missing, or ask something else today")
    record.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these alone, in any case: runs (r02), grids (g07), lab")
    record.add_argument("--check", action="store_true", help="write nothing: play them again and compare")
    record.add_argument("--jobs", type=int, default=1, help="so many at a time, on one core each; default 1")
    learn = commands.add_parser("learn", help="look after the lessons")
    learn.add_argument("--claims", action="store_true", required=True, help="recompute every number that a lesson claims")
    learn.add_argument("--write", action="store_true", help="put what was found into the lessons, and draw their figures anew")
    site = commands.add_parser("site", help="write the lessons and worksheets as a folder that opens without this program")
    site.add_argument("--out", type=Path, default=Path("site"), help="the folder; default site")
    site.add_argument("--address", default="", help="where a web host will have it, for the worksheets to print")
    site.add_argument("--pdf", action="store_true", help="the worksheets as PDF too, where Chromium and Playwright are")
    admin.options(commands.add_parser("admin", help="for whoever runs a server: how it stands, cleaning, exporting"))
    commands.add_parser("docs", help="write docs/plugins.md from the plug-ins, and the types of events for JavaScript")
    given = parser.parse_args(arguments)
    try:
        if given.command == "app":
            launch.start(given.host, given.port, headless=given.headless)
        elif given.command in ("record", "docs", "learn") and INSTALLED:
            raise RuntimeError(ONLY_IN_A_CHECKOUT.format(given.command))
        elif given.command == "run":
            run_seeds(given.experiment, given.out, given.seeds)
        elif given.command == "train":
            training_commands.train_here(vars(given))
        elif given.command == "train-attacker":
            training_commands.train_attacker_here(vars(given))
        elif given.command == "evaluate":
            evaluate_here(given.checkpoint)
        elif given.command == "fetch":
            from leakage.data.fetch import fetch as download
            from leakage.data.images import data_folder

            log.info("%s is in %s.", given.name, download(given.name, data_folder()))
        elif given.command == "record":
            from leakage.workers import recorder

            recorder.record(given.only, check=given.check, jobs=given.jobs)
        elif given.command == "learn":
            tell_claims(write=given.write)
        elif given.command == "admin":
            admin.perform(given, settings())
        elif given.command == "site":
            make_site(given.out, given.address, pdf=given.pdf)
        else:
            write_docs()
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        log.error("%s", error)
        return 1
    return 0


def run_seeds(file: Path, out: Path, seeds: int) -> None:
    """Play the experiment of a file with its seed, or with so many from there on, each in a folder of its own beside success.json."""
    known = plugin_catalog.describe()
    experiment = parse(file.read_bytes()).resolve(known)
    for caution in warnings(experiment, known):
        log.warning("%s", caution)
    if seeds < 2:
        run_file(experiment, out)
        return
    ends = {
        n: run_file(experiment.model_copy(update={"seed": n}), out / f"seed-{n}") for n in range(experiment.seed, experiment.seed + seeds)
    }
    told = {
        "a recognizable picture": success_words([end["verdict"]["word"] == RECOGNIZABLE for end in ends.values()]),
        "every picture picked out of its line-up": success_words([end["answer"]["scores"]["identified"] == 1 for end in ends.values()]),
    }
    (out / "success.json").write_text(json.dumps({"seeds": list(ends), **told}, indent=1))
    for what, words in told.items():
        log.info("Seeds with %s: %s.", what, words)


def run_file(experiment: Experiment, out: Path) -> dict[str, Any]:
    """Play an experiment; frames/NNNNNN.png, final.png and metrics.json, whose content is returned, appear in `out`."""
    from leakage.engine.stopping import StoppedError
    from leakage.runs.endings import UNBEGUN, ending
    from leakage.runs.event_parts import finite
    from leakage.workers.adapter import play, prepare
    from leakage.workers.attack_job import contact_sheet

    if experiment.has_uploads:
        raise SpecError("pictures: uploads live only on the page that received them. Choose gallery or data-set pictures.")
    (out / "frames").mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + experiment.max_seconds
    try:
        scene = prepare(experiment, pulse=lambda: time.monotonic() > deadline)
    except StoppedError:
        raise RuntimeError(UNBEGUN.format(experiment.max_seconds)) from None
    rows: list[dict[str, Any]] = []
    for frame in play(experiment, scene=scene, pulse=lambda: time.monotonic() > deadline):
        (out / ("final.png" if frame.final else f"frames/{frame.step:06d}.png")).write_bytes(contact_sheet(frame.x))
        row = {"step": frame.step, "seconds": frame.seconds, "loss": finite(frame.loss), "labels": frame.labels}
        rows.append(row | {"scores": finite(frame.scores)})
    answer = rows.pop()
    how = "limit" if frame.ending == "stopped" else frame.ending
    ended = ending(how, frame.step, experiment)
    result = {
        "experiment": experiment.model_dump(),
        "baselines": finite(scene.baselines.scores),
        "answer": answer,
        "verdict": frame.verdict,
        "ending": ended.model_dump(),
        "note": finite(frame.note),
        "frames": rows,
    }
    (out / "metrics.json").write_text(json.dumps(result, indent=1, allow_nan=False))
    grey = scene.baselines.scores["grey"]["psnr"]
    scores, word = answer["scores"], (frame.verdict or {})["word"]
    if "event" in frame.note:
        log.info("%s", frame.note["event"])
    came = f"{ended.words}. {word.capitalize()}"
    log.info("%s: PSNR %.1f dB (a grey picture: %.1f dB). Results are in %s.", came, scores["psnr"], grey, out)
    return result


def evaluate_here(ids: list[str]) -> None:
    """A table: every stage of every checkpoint, its accuracy now and on its card."""
    from leakage.engine.devices import best_device
    from leakage.workers.training_adapter import accuracy_of

    unknown = [id for id in ids if id not in checkpoints.cards()]
    if unknown:
        checkpoints.find(f"{unknown[0]}@0")
    for id, card in checkpoints.cards().items():
        for stage in card.stages if not ids or id in ids else ():
            found = accuracy_of(card, stage, best_device())
            log.info("%-28s round %3d  %6.2f %%   card %6.2f %%", id, stage.rounds, 100 * found, 100 * stage.accuracy)


def tell_claims(*, write: bool) -> None:
    """Recompute what the lessons claim; say which are off, and put them right when asked."""
    from leakage.learn import claims
    from leakage.learn.lessons import lessons

    checked = [one for lesson in lessons() for one in claims.check(lesson)]
    off = [one for one in checked if not one.holds]
    for one in off:
        log.info("%s", one.words)
    log.info("%d of %d claims hold to the last printed digit.", len(checked) - len(off), len(checked))
    for file in claims.put_right(off) if write else ():
        log.info("Written: %s. Read its sentences again.", file.relative_to(ROOT))
    if write:
        claims.keep_figures(lessons())
    if off and not write:
        raise RuntimeError("With --write what was found is put in.")


def make_site(out: Path, address: str, *, pdf: bool) -> None:
    """The folder, and how to open it."""
    if importlib.util.find_spec("jinja2") is None:
        raise RuntimeError('The site is written from templates, by Jinja2. Run `pip install "gradient-leakage-explorer[app]"`.')
    from leakage.web.printing import print_all
    from leakage.web.site import HOME, write_site

    size = write_site(out, plugin_catalog.describe(), address=address)
    log.info("%.1f MB are in %s: open its %s in a browser, or put the folder on any web host.", size / 1e6, out, HOME)
    if pdf:
        log.info("%d PDF files are in %s.", print_all(out / "worksheets"), out / "worksheets")


def write_docs() -> None:
    """What is made from the code: the plug-ins as a page, the events as TypeScript types."""
    (ROOT / "docs" / "plugins.md").write_text(plugins_page(plugin_catalog.describe()))
    TYPES.write_text(declarations())


def plugins_page(known: catalog.Catalog) -> str:
    """docs/plugins.md: every plug-in with its fields."""
    lines = ["# Plug-ins", "", "Written by `make docs` from the plug-ins themselves.", ""]
    for kind, folder in catalog.KINDS.items():
        lines += [f"## {folder.capitalize()}", ""]
        for entry in known.of(kind):
            lines += [
                f"### {entry.title} (`{entry.id}`)",
                "",
                entry.plain,
                "",
                entry.hint,
                "",
                entry.doc,
                "",
                f"Paper: <{entry.source}>",
                "",
            ]
            if entry.fields:
                lines += ["| field | default | allowed | what it is |", "|---|---|---|---|"]
                for field in entry.fields:
                    lines.append(f"| `{field.name}` | {field.default} | {allowed(field)} | {field.help} |")
                lines.append("")
    return "\n".join(lines)


def allowed(field: catalog.Field) -> str:
    """What a field may be, for its row on that page."""
    if field.syntax:
        return f"a {field.syntax}, in steps such as {SYNTAXES[field.syntax].forms}"
    return ", ".join(field.options) or ("true, false" if field.type == "bool" else f"{field.low} to {field.high}")


if __name__ == "__main__":
    sys.exit(command())
