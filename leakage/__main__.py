"""The command line, `gradient-leakage` or `python -m leakage`: the engine without pages, and the start of the web server."""

import argparse
import errno
import importlib.util
import logging
import sys
from dataclasses import is_dataclass
from pathlib import Path

from leakage.data import checkpoints
from leakage.data.fetch import NAMES
from leakage.results import admin, schemas
from leakage.runs.broken_home import in_plain_words
from leakage.runs.connections import StoreError
from leakage.runs.event_types import TYPES, declarations
from leakage.settings import INSTALLED, ROOT, settings
from leakage.spec import catalog
from leakage.spec.declarations import DECLARED, explanations
from leakage.spec.syntax import SYNTAXES
from leakage.web import launch
from leakage.workers import plugin_catalog, run_command, training_commands

ONLY_IN_A_CHECKOUT = "`{0}` writes into the project's source tree, and this is an installed package: run `make {0}` in a checkout."
FILE_ERRORS: dict[type[OSError], str] = {
    FileNotFoundError: "there is no such file or folder. Check its name.",
    IsADirectoryError: "this is a folder, and expected is a file. Name a file.",
    NotADirectoryError: "a part of this path is a file, and expected is a folder. Name another folder.",
    FileExistsError: "this is a file, and expected is a folder. Name another folder.",
    PermissionError: "this user may not read or write it. Change its permissions, or name another place.",
}
INTERRUPTED = 130  # exit status, as shells have it
log = logging.getLogger("leakage")


def command() -> int:
    """Run the command in this process's arguments, and return its exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    return main(sys.argv[1:])


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status: 0, or 1 after an error that was logged as a sentence, or INTERRUPTED.

    Args:
        arguments: the name of the command and its arguments, for example ["run", "experiment.json", "--out", "results"].
    """
    name = "gradient-leakage" if Path(sys.argv[0]).name.startswith("gradient-leakage") else "python -m leakage"
    parser = argparse.ArgumentParser(prog=name, description="Attack, defend and watch what the gradients of federated learning give away.")
    commands = parser.add_subparsers(dest="command", required=True)
    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--host", default="127.0.0.1", help="the address to listen on; default 127.0.0.1, this machine only")
    app.add_argument("--port", type=int, default=8501, help="default 8501")
    app.add_argument("--headless", action="store_true", help="open no browser")
    run_command.options(commands.add_parser("run", help="run an experiment file and write frames, metrics.json and final.png"))
    audit_options(
        commands.add_parser("audit", help="attack updates of your own model, and write a report: exit status 3 if --fail-if is passed")
    )
    training_commands.options(commands)
    evaluate = commands.add_parser(
        "evaluate", help="measure the accuracy of checkpoints on the whole test sets, and compare it with their cards"
    )
    evaluate.add_argument("checkpoint", nargs="*", help="ids of checkpoints; default: all on this machine")
    fetch = commands.add_parser("fetch", help="download a data set, or a network for LPIPS, where a connection allows")
    fetch.add_argument("name", choices=NAMES)
    record = commands.add_parser("record", help="make the recordings in assets/ that are missing or of other experiments than today's")
    record.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="record only these, even if they are up to date: runs (r02), grids (g07), lab"
    )
    record.add_argument("--check", action="store_true", help="write nothing: compute the runs again and compare them with their recordings")
    record.add_argument("--verdicts", action="store_true", help="compute no run: judge the recordings by today's rule")
    record.add_argument("--jobs", type=int, default=1, help="the number of runs computed at a time, on one core each; default 1")
    learn = commands.add_parser("learn", help="check the lessons and the museum of papers")
    learn.add_argument(
        "--claims", action="store_true", required=True, help="recompute every number that a lesson claims or a paper stands beside"
    )
    learn.add_argument("--write", action="store_true", help="write the recomputed numbers into lessons and papers, and draw figures again")
    site = commands.add_parser("site", help="write the lessons and worksheets as a folder that opens without this program")
    site.add_argument("--out", type=Path, default=Path("site"), help="the folder; default site")
    site.add_argument("--address", default="", help="the address at which a web host will serve the folder, which worksheets print")
    site.add_argument("--pdf", action="store_true", help="write the worksheets as PDF too, which needs Chromium and Playwright")
    admin.options(commands.add_parser("admin", help="for the administrator of a server: its state, cleaning, exporting"))
    schema = commands.add_parser("schema", help="print the JSON Schema of an experiment file, or of metrics.json")
    schema.add_argument("name", nargs="?", choices=schemas.NAMES, default=schemas.NAMES[0], help=f"default {schemas.NAMES[0]}")
    commands.add_parser("docs", help="write docs/plugins.md from the plug-ins, JSON Schemas, and the types of events for JavaScript")
    given = parser.parse_args(arguments)
    try:
        if given.command == "app":
            launch.start(given.host, given.port, headless=given.headless)
        elif given.command in ("record", "docs", "learn") and INSTALLED:
            raise RuntimeError(ONLY_IN_A_CHECKOUT.format(given.command))
        elif given.command == "run":
            run_command.perform(given)
        elif given.command == "audit":
            from leakage.auditing.command import perform  # torch, a second

            return perform(given)
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
        elif given.command == "record" and given.verdicts:
            from leakage.workers.rejudge import rejudge

            rejudge(given.only)
        elif given.command == "record":
            from leakage.workers import recorder

            recorder.record(given.only, check=given.check, jobs=given.jobs)
        elif given.command == "learn":
            check_claims(write=given.write)
        elif given.command == "admin":
            admin.perform(given, settings())
        elif given.command == "schema":
            sys.stdout.write(schemas.text(given.name, plugin_catalog.describe()))
        elif given.command == "site":
            make_site(given.out, given.address, pdf=given.pdf)
        else:
            write_docs()
    except (ValueError, OSError, RuntimeError, MemoryError, StoreError) as error:
        explained = in_plain_words(error, settings().store) if isinstance(error, StoreError) else None
        log.error("%s", file_words(error) if isinstance(error, OSError) else explained or error)
        return 1
    except KeyboardInterrupt:
        log.error("Stopped by hand.")
        return INTERRUPTED
    return 0


def file_words(error: OSError) -> str:
    """Describe an OSError in a sentence that says what to do, or, where there is none, in the words of the operating system.

    >>> file_words(FileNotFoundError(2, "No such file or directory", "asked.json"))
    'asked.json: there is no such file or folder. Check its name.'
    """
    words = next((words for kind, words in FILE_ERRORS.items() if isinstance(error, kind)), "")
    name = error.filename2 or error.filename
    if error.errno == errno.ENOSPC:
        words = "the disk is full. Make room and run it again."
    return f"{name}: {words}" if words and name else str(error.strerror or error) + ("." if name is None else f": {name}.")


def audit_options(audit: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `audit` to its parser."""
    audit.add_argument(
        "file", type=Path, help="audit.toml; the audit.json of an earlier audit, which is repeated; or a recorded update's folder"
    )
    audit.add_argument("--model", default="", metavar="MODULE:FUNCTION", help="of a recorded update: the function that returns its network")
    audit.add_argument("--minutes", type=float, default=5.0, help="of a recorded update: the time for the audit; default 5")
    audit.add_argument("--out", type=Path, required=True, help="a new folder for the report")
    audit.add_argument(
        "--fail-if", action="append", default=[], metavar="THRESHOLD", help='for example "recognizable > 0"; may be repeated'
    )
    audit.add_argument("--dpia", action="store_true", help="add the headings of a data-protection impact assessment, with room to write")


def evaluate_here(ids: list[str]) -> None:
    """Log the accuracy, measured now and on its model card, of trained models after each number of rounds that has stored weights.

    Args:
        ids: the ids of the trained models; empty: all.
    """
    from leakage.engine.devices import best_device
    from leakage.workers.training_adapter import accuracy_of

    unknown = [id for id in ids if id not in checkpoints.cards()]
    if unknown:
        checkpoints.find(f"{unknown[0]}@0")
    for id, card in checkpoints.cards().items():
        for stage in card.stages if not ids or id in ids else ():
            accuracy = accuracy_of(card, stage, best_device())
            log.info("%-28s round %3d  %6.2f %%   card %6.2f %%", id, stage.rounds, 100 * accuracy, 100 * stage.accuracy)


def check_claims(*, write: bool) -> None:
    """Recompute the numbers of lessons and of the museum of papers, and log which are wrong; with `write`, correct them and draw figures.

    Raises:
        RuntimeError: a number or a verdict is wrong, and `write` is False.
    """
    from leakage.learn import claims, paper_checks
    from leakage.learn.lessons import lessons
    from leakage.learn.paper_rows import museum

    checked = [claim for lesson in lessons() for claim in claims.check(lesson)]
    wrong = [claim for claim in checked if not claim.holds]
    for claim in wrong:
        log.info("%s", claim.words)
    log.info("%d of %d claims hold to the last printed digit.", len(checked) - len(wrong), len(checked))
    rows, problems = (
        [row for paper in museum().papers for row in paper.rows],
        list(paper_checks.problems(museum(), plugin_catalog.describe())),
    )
    for problem in problems:
        log.info("%s", problem.words)
    log.info("%d of %d rows of papers hold, with their verdicts.", len(rows) - len(problems), len(rows))
    for file in claims.correct_claims(wrong) if write else ():
        log.info("Written: %s. Read its sentences again.", file.relative_to(ROOT))
    if write:
        claims.write_figures(lessons())
        paper_checks.write_todays_numbers(museum())
    if (wrong or problems) and not write:
        raise RuntimeError("With --write the recomputed numbers are written into lessons and papers.")


def make_site(out: Path, address: str, *, pdf: bool) -> None:
    """Write the lessons as a folder of static files, with PDF worksheets if `pdf`, and log how to open the folder."""
    if importlib.util.find_spec("jinja2") is None:
        raise RuntimeError('The site is written from templates, by Jinja2. Run `pip install "gradient-leakage-explorer[app]"`.')
    from leakage.web.site import HOME, add_pdfs, write_site

    size = write_site(out, plugin_catalog.describe(), address=address)
    log.info("%.1f MB are in %s: open its %s in a browser, or put the folder on any web host.", size / 1e6, out, HOME)
    if pdf:
        log.info("%d PDF files are in %s.", add_pdfs(out), out / "worksheets")


def write_docs() -> None:
    """Write the files that are generated from the code: docs/plugins.md, the JSON Schemas, and the events as TypeScript types."""
    known = plugin_catalog.describe()
    (ROOT / "docs" / "plugins.md").write_text(plugins_page(known))
    schemas.write(ROOT / "docs" / "schema", known)
    TYPES.write_text(declarations())


def plugins_page(known: catalog.Catalog) -> str:
    """Return docs/plugins.md: every plug-in with its fields."""
    lines = ["# Plug-ins", "", "Written by `make docs` from the plug-ins themselves.", ""]
    for kind, folder in catalog.KINDS.items():
        lines += [f"## {folder.capitalize()}", ""]
        for entry in known.of(kind):
            parts = (f"### {entry.title} (`{entry.id}`)", entry.plain, entry.hint, entry.doc, f"Paper: <{entry.source}>")
            lines += ["\n\n".join(parts), ""]
            if entry.fields:
                lines += ["| field | default | allowed | what it is |", "|---|---|---|---|"]
                for field in entry.fields:
                    lines.append(f"| `{field.name}` | {field.default} | {allowed(field)} | {field.help} |")
                lines.append("")
    return "\n".join([*lines, *declarations_section()])


def declarations_section() -> list[str]:
    """Return the lines of docs/plugins.md on the attributes that plug-ins and strategies can set, from their docstrings."""
    about = "A plug-in sets these as attributes of its class, a strategy as arguments. What has no default must be set."
    lines = ["## What a plug-in declares", "", about, ""]
    for heading, owner in DECLARED.items():
        lines += [f"### {heading}", "", "| attribute | default | what it is |", "|---|---|---|"]
        for name, text in explanations(owner).items():
            lines.append(f"| `{name}` | {default(owner, name)} | {text} |")
        lines.append("")
    return lines


def default(owner: type, name: str) -> str:
    """Return the default of an attribute that plug-ins or strategies set, as Markdown for docs/plugins.md; "" if they must set it."""
    if not hasattr(owner, name):
        return ""
    value = getattr(owner, name)
    return f"`{type(value).__name__}()`" if is_dataclass(value) else f"`{value!r}`"


def allowed(field: catalog.Field) -> str:
    """Describe the allowed values of a field, as Markdown for docs/plugins.md."""
    if field.syntax:
        return f"a {field.syntax}, in steps such as {SYNTAXES[field.syntax].forms}"
    return ", ".join(field.options) or ("true, false" if field.type == "bool" else f"{field.low} to {field.high}")


if __name__ == "__main__":
    sys.exit(command())
