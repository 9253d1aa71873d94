"""The field's words: no name of the project's earlier dialect is left in its code."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = [file for folder in ("leakage", "pages", "benchmarks", "scripts", "tests") for file in sorted((ROOT / folder).rglob("*.py"))]
CODE = [*CODE, ROOT / "app.py"]

GONE = {  # as any name, or as a part of one that underscores or capitals set off
    **dict.fromkeys(("Counter", "counters", "counter"), "AdaptiveStrategy, strategies"),
    **dict.fromkeys(("voice", "voices"), "attacker"),
    **dict.fromkeys(("Doing", "doing"), "ClientBehavior, behavior"),
    **dict.fromkeys(("Standards", "standards"), "Baselines"),
    "Draws": "StepRng",
    "Memory": "ClientState",
    **dict.fromkeys(("guard", "guarded", "adapt"), "defend, surrogate"),
    "trust": "entry_weights",
    "sought": "latents",
    "over_others": "is_aggregation",
    **dict.fromkeys(("joins", "mates"), "batchable, batchable_runs"),
    "untouched": "initial_model",
    **dict.fromkeys(("bent", "bend"), "nonsmooth_layer, activation"),
    **dict.fromkeys(("Phone", "phone"), "FedClient"),
    **dict.fromkeys(("Price", "price", "prices", "beforehand", "utility"), "accuracy cost, precomputed"),
    "spelled": "with_defaults",
}
DEFINED = {  # as what is defined for others: modules, classes, functions, methods, fields. As a local variable it names what it is there
    **dict.fromkeys(("found", "shown", "told", "offer", "asked", "made", "said"), "a verb and its object"),
    **dict.fromkeys(("seek", "guess"), "optimize_latents, latent_init"),
    **dict.fromkeys(("spread", "track", "serve"), "broadcast_state, infer_state, server_update"),
    **dict.fromkeys(("together", "alone", "opened"), "run_batched, run_single, prepare_case"),
    **dict.fromkeys(("narrow", "heard", "lost"), "bfloat16, loss_log, diverged"),
    **dict.fromkeys(("like", "beside"), "timing_key, same_model_and_attack"),
    **dict.fromkeys(("average", "memory", "draws"), "to_gradient, state, step_rng"),
    **dict.fromkeys(("assumed", "book"), "threat_model, results_file"),
}
ARGUED = {  # (file, name): why it stays
    ("leakage/evaluation/metrics.py", "Counter"): "collections.Counter: Python's own",
    ("tests/contracts/test_house.py", "Counter"): "collections.Counter: Python's own",
    ("leakage/rooms/room.py", "Counter"): "collections.Counter: Python's own",
    ("*", "perf_counter"): "Python's own",
    ("*", "trust_env"): "httpx's own",
    ("*", "MemoryError"): "Python's own",
    ("leakage/workers/memory_limit.py", "OutOfMemoryError"): "torch's own",
    ("leakage/ui/common/uploaded_files.py", "MemoryUploadedFileManager"): "Streamlit's own",
    ("leakage/results/variant_results.py", "guess"): "what the attack answered, a noun beside `private`; no strategy's latent_init",
}


def words_of(name: str) -> set[str]:
    """The name, and its parts: lineup_price holds price, PhoneError holds Phone.

    >>> sorted(words_of("PhoneError_price"))
    ['Error', 'Phone', 'PhoneError_price', 'price']
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return {name, *parts, *(part.lower() for part in parts if part.isupper())}


def names(source: str) -> Iterator[tuple[int, str]]:
    """Every identifier with its line, but for the names of tests: those are sentences, and tell the page's story of phones."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and not token.string.startswith("test_"):
            yield token.start[0], token.string


def definitions(source: str) -> Iterator[tuple[int, str]]:
    """What a module defines for others: classes, functions, methods, fields and module-level names, each with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        if isinstance(node, (ast.ClassDef, ast.Module)):
            for statement in node.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
                yield from ((statement.lineno, target.id) for target in targets if isinstance(target, ast.Name))


def leftovers(file: Path, source: str) -> list[str]:
    """The names of a file that should be others, each with its place and remedy."""
    place = str(file.relative_to(ROOT))
    bad = {(line, name, GONE[word]) for line, name in names(source) for word in words_of(name) if word in GONE}
    if place.split("/")[0] != "tests":  # what tests define, nobody else calls
        bad |= {(line, name, DEFINED[name]) for line, name in definitions(source) if name in DEFINED}
        bad |= {(0, file.stem, (GONE | DEFINED)[file.stem])} if file.stem in GONE | DEFINED else set()
    kept = {name for where, name in ARGUED if where in ("*", place)}
    return [f"{place}:{line}: {name}: use {remedy}" for line, name, remedy in sorted(bad) if name not in kept]


@pytest.mark.parametrize("file", CODE, ids=lambda file: str(file.relative_to(ROOT)))
@pytest.mark.long
def test_names_are_the_fields_own(file: Path) -> None:
    assert leftovers(file, file.read_text()) == []


def test_the_exceptions_are_needed() -> None:
    """An exception whose name is gone goes too."""
    for (where, name), reason in ARGUED.items():
        files = [file for file in CODE if where in ("*", str(file.relative_to(ROOT)))]
        assert any(name == found for file in files for _, found in names(file.read_text())), f"{where}: {name}: {reason}"


@pytest.mark.parametrize("source", ["class Counter: ...", "x.memory.phone = 1", "def f(seen, counter_of=1): ...", "f(guard=1)"])
def test_the_check_sees_a_name_wherever_it_stands(source: str) -> None:
    assert leftovers(ROOT / "leakage" / "engine" / "core.py", source) != []


@pytest.mark.parametrize("source", ["def found(): ...", "class A:\n    told: str", "async def offer(): ...", "made = 1"])
def test_the_check_sees_a_definition(source: str) -> None:
    assert leftovers(ROOT / "leakage" / "engine" / "core.py", source) != []
    assert leftovers(ROOT / "leakage" / "engine" / "core.py", "def f():\n    found = told = 1\n    return found") == []
