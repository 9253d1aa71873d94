"""Modules as one classic script: it computes the same, without modules, and unknown syntax is refused."""

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from leakage.frontend.bundle import bundle
from leakage.frontend.own_script import WORKER, worker_script
from leakage.frontend.script_text import code_of
from leakage.frontend.scripts import FOLDER, Scripts, read, scripts
from leakage.frontend.short_names import shorten

ENDS = """
const order = { network: 'lenet', shape: [3, 8, 8], classes: 10, labels: [4, 7], seed: 1, attack: 'idlg', steps: 6, restarts: 1 };
const pictures = Float32Array.from({ length: 384 }, (_, i) => (i % 17) / 17);
const noise = { id: 'gaussian_noise', scale: 0.01 };
const orders = [
  {}, { attack: 'dlg' }, { network: 'mlp', attack: 'linear_layer', steps: 1 }, { plain: true, rounds: 2, protection: noise },
  { attack: 'inverting_gradients', schedule: 'coarse first', protection: { id: 'clipping', bound: 1, scope: 'each layer' } },
  { adaptive: false, protection: [{ id: 'pruning', fraction: 0.5 }, { id: 'low_precision', number: 'int8', rounding: 'stochastic' }] },
  { labels: [4, 7, 1, 2], phones: pictures }, { protection: { id: 'low_precision', number: 'fp16' } }, { attack: 'none' },
];
let at = 0;
const next = () => at < orders.length && onmessage({ data: { ...order, pictures, ...orders[at++] } });
globalThis.postMessage = (message) => {
  if (message.kind === 'frame' || message.kind === 'sent') return;
  const { seconds, rate, ...rest } = message;
  console.log(JSON.stringify(rest));
  setTimeout(next);
};
next();
"""  # plays orders of all kinds in the worker's script, and prints how each ends

NODE = pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")


def scripts_of(**files: str) -> Scripts:
    return Scripts({f"{name}.js": text.encode() for name, text in files.items()})


def node(script: str, *, module: bool = False) -> str:
    """What it prints."""
    command = ["node", *(["--input-type=module"] if module else []), "-"]
    return subprocess.run(command, input=script, text=True, capture_output=True, timeout=240, check=True).stdout


@NODE
def test_todays_reader_runs_without_modules_up_to_its_page() -> None:
    whole = bundle(scripts(), "reader/reader.js")
    assert len(re.findall(r"^const \$\d+=\(\(\)=>\{$", whole, re.MULTILINE)) == len(scripts().closure("reader/reader.js"))
    assert node(f"globalThis.document = {{ getElementById: (id) => console.log(id) }};\n{whole}") == "about\n"


@NODE
def test_a_bundle_computes_what_its_modules_do(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    mlp = "new Network(fastestKernels(), PLANS.mlp([1, 2, 2], 3, { width: 4 }))"
    calls = f"[short(0.000123), hash('07-noise', 2, true), scaleOf([1, 900], {{ from: 0, to: 9, log: true }}).ticks, {mlp}.count]"
    names = {"./live/words.js": "short", "./reader/walk.js": "writeHash as hash", "./reader/scales.js": "scaleOf"}
    names |= {"./attack/simd.js": "fastestKernels", "./attack/network.js": "Network", "./attack/plans.js": "PLANS"}
    text = "".join(f"import {{ {name} }} from '{path}';\n" for path, name in names.items())
    (tmp_path / "entry.js").write_text(f"{text}console.log(JSON.stringify({calls}));\n")
    classic = node(bundle(read(tmp_path), "entry.js"))
    assert classic == node((tmp_path / "entry.js").read_text().replace("'./", f"'{FOLDER.as_uri()}/"), module=True)
    assert json.loads(classic)[1] == "#07-noise/3?present"
    assert json.loads(classic)[3] == (4 * 4 + 4) + (4 * 4 + 4) + (3 * 4 + 3)


@NODE
def test_names_that_two_modules_share_do_not_meet() -> None:
    files = scripts_of(
        a="import { value as b } from './b.js';\nimport { value } from './c.js';\nconst own = 1;\nconsole.log(own, b, String(value));\n",
        b="const own = 2;\nexport const value = own;\n",
        c="import { value as other } from './b.js';\nconst own = 3;\nexport function value() {}\nvalue.toString = () => own + other;\n",
    )
    assert node(bundle(files, "a.js")) == "1 2 5\n"


def test_a_bundle_has_no_comments_and_keeps_what_looks_like_one() -> None:
    files = scripts_of(a="// why\nconst address = 'http://x'; /* what */\n/** @type {string} */\nconsole.log(`${address}/*`);\n")
    lines = ["(()=>{", "'use strict';", "const $0=(()=>{", "const address='http://x';", "console.log(`${address}/*`);"]
    assert bundle(files, "a.js").splitlines() == [*lines, "return{};", "})();", "})();"]


@pytest.mark.parametrize(
    "line",
    [
        "import value from './b.js';",
        "import * as all from './b.js';",
        "import './b.js';",
        "export default 1;",
        "export let x = 1;",
        "export { x };",
        "export * from './b.js';",
        "export const { x } = y;",
        "const later = import('./b.js');",
        "const here = import.meta.url;",
        "await later();",
        "if (x) {\n  import('./b.js');\n}",
    ],
)
def test_syntax_that_is_not_known_is_refused_with_its_line(line: str) -> None:
    files = scripts_of(a=f"// first\n{line}\n", b="export const value = 1;\n")
    place = 3 if line.startswith("if") else 2
    with pytest.raises(ValueError, match=rf"^a\.js, line {place}: the bundler does not understand ['\"]"):
        bundle(files, "a.js")


def test_a_name_that_is_not_exported_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a\.js: b\.js exports no other\.$"):
        bundle(scripts_of(a="import { value, other } from './b.js';\n", b="export const value = 1;\n"), "a.js")


def test_modules_in_a_circle_are_refused() -> None:
    files = scripts_of(a="import { b } from './b.js';\nexport const a = 1;\n", b="import { a } from './a.js';\nexport const b = 1;\n")
    with pytest.raises(ValueError, match=r"^[ab]\.js imports [ab]\.js imports [ab]\.js: modules that import each other"):
        bundle(files, "a.js")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a /* import */ b", f"a {'':12} b"),
        ("a 'it\\'s import' b", f"a {'':14} b"),
        ("a / b / import('x')", "a / b / import(   )"),
        ("x.replace(/['\"`]/g, b) / c", f"x.replace({'':8}, b) / c"),
        ("return /[/'] import/.test(a)", f"return {'':13}.test(a)"),
    ],
)
def test_what_is_no_code_is_blank(text: str, code: str) -> None:
    assert code_of(text) == code


def test_in_a_template_only_what_is_computed_is_code() -> None:
    text = "`import ${a + `${b} import`} export` + { c: `}` }"
    assert code_of(text).split() == ["a", "+", "b", "+", "{", "c:", "}"]
    assert len(code_of(text)) == len(text)


def test_the_worker_is_below_20_kb_compressed() -> None:
    assert len(gzip.compress(worker_script().encode(), 9)) < 20_000


@NODE
@pytest.mark.parametrize(
    "text",
    [
        "const sum = (first, { second, third: [fourth] = [4] }) => first + second + fourth; return sum(1, { second: 2 });",
        "const second = 2; const made = { second, third: second, get fourth() { return second; } }; return JSON.stringify(made);",
        "const word = 'x'; return `${word} ${[1].map((word) => `${word}`)}`;",
        "class Sum { total = 1; add(total) { this.total += total; return this; } } return new Sum().add(2).total;",
        "const words = (kind) => { switch (kind) { case 'a': { const kind = 'b'; return { kind }; } default: return { kind }; } };"
        " return JSON.stringify([words('a'), words('c'), words('')]);",
    ],
)
def test_short_names_change_nothing_that_a_script_computes(text: str) -> None:
    (short,) = shorten([text])
    assert short != text
    assert node(f"console.log((() => {{ {short} }})())") == node(f"console.log((() => {{ {text} }})())")


@NODE
def test_the_worker_with_short_names_computes_the_same() -> None:
    ends = [node(f"globalThis.WorkerGlobalScope = {{}};\n{text}\n{ENDS}") for text in (worker_script(), bundle(scripts(), WORKER))]
    assert ends[0] == ends[1]
    kinds = [json.loads(line)["kind"] for line in ends[0].splitlines()]
    assert kinds == ["end"] * 8 + ["failed"]


def test_a_word_that_some_part_does_not_declare_keeps_its_name() -> None:
    assert shorten(["const Math = 1;", "Math.abs(1);"]) == ["const Math = 1;", "Math.abs(1);"]
