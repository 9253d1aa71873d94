"""The editor of a network: its lines, what goes in and out, and changes by one click; all of it in the address."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from leakage.networks.edits import with_filters, with_skip
from leakage.networks.grammar import GRAMMAR, JOINT, Block, NetworkError, Step, parse, unroll
from leakage.networks.rank import CONVENTIONS, Convention, Cut, advice, analyse
from leakage.networks.templates import TEMPLATES, template_of
from leakage.spec.experiment import SIZES
from leakage.spec.refusals import MAX_CLASSES
from leakage.ui.architecture import counts as counts
from leakage.ui.common.markdown import escape

START = "CNN6"
MOST_PICTURES = 32
FIRST = 4  # skips that are offered at once, the rest is folded away
BATCH = "With every picture the unknowns grow, and the outputs with them. The gradient stays as long as it is."
SETTINGS: dict[str, tuple[Any, ...]] = {  # name in the address -> what it may be, the default first
    "size": (32, *(size for size in SIZES if size != 32)),
    "channels": (3, 1),
    "outputs": (10, *range(1, MAX_CLASSES + 1)),
    "batch": tuple(range(1, MOST_PICTURES + 1)),
    "convention": CONVENTIONS,
    "c": (-20, *range(-120, 101)),  # hundredths, where the k-curve is crossed
}
COLOURS = {3: "Colour", 1: "Grey"}
CONVENTION_NAMES = {"unit": "of its last convolution", "w1_plus_shortcut": "of its first convolution and of the skip itself"}


@dataclass(frozen=True)
class Given:
    """A network that can be built, and what goes in and out."""

    steps: tuple[Step, ...]
    shape: tuple[int, int, int]
    outputs: int
    batch: int
    convention: Convention


def key(name: str) -> str:
    """The state of a widget of this page; the lab has a size of its own."""
    return f"architecture.{name}"


def read_url() -> None:
    """On the first run: the settings of the address; what it does not allow is passed over."""
    state, address = st.session_state, st.query_params
    if key("net") in state:
        return
    state[key("net")] = counts.lines(address.get("net", TEMPLATES[START]))
    for name, options in SETTINGS.items():
        state[key(name)] = next((option for option in options if str(option) == address.get(name)), options[0])


def write_url() -> None:
    """All that differs from the default into the address."""
    values = {name: (str(st.session_state.get(key(name), options[0])), str(options[0])) for name, options in SETTINGS.items()}
    values["net"] = (JOINT.join(st.session_state[key("net")].splitlines()), TEMPLATES[START])
    for name, (value, default) in values.items():
        if value == default:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != value:
            st.query_params[name] = value


def put(text: str) -> None:
    """Another network into the editor."""
    st.session_state[key("net")] = counts.lines(text)


def put_template() -> None:
    """The chosen template into the editor; clearing the menu leaves the lines alone."""
    if name := st.session_state[key("template")]:
        put(TEMPLATES[name])


def settings() -> Given | None:
    """Two cards: the network, and what goes in and out; None while a line is no step."""
    state = st.session_state
    read_url()
    with st.container(border=True, gap="small", key="step-1"):
        st.markdown("**1 · The network**")
        state[key("template")] = template_of(state[key("net")])
        words = "Your own network"
        st.selectbox("Start from", list(TEMPLATES), index=None, placeholder=words, key=key("template"), on_change=put_template)
        text = st.text_area("Its steps, one per line", height=230, key=key("net"), help=GRAMMAR) or ""
        problem = st.container()
    with st.container(border=True, gap="small", key="step-2"):
        st.markdown("**2 · What goes in and out**")
        size = st.segmented_control("Size", SIZES, default=32, required=True, format_func=lambda side: f"{side:d} px", key=key("size"))
        with st.container(horizontal=True, gap="small"):
            channels = st.segmented_control(
                "Colours", list(COLOURS), default=3, required=True, format_func=COLOURS.__getitem__, key=key("channels")
            )
            outputs = st.number_input("Outputs", 1, MAX_CLASSES, key=key("outputs"), width=130)
        batch = st.slider("Pictures in the batch", 1, MOST_PICTURES, key=key("batch"), help=BATCH)
    try:
        steps = parse(text)
        unroll(steps, (channels, size, size), outputs)
    except NetworkError as error:
        problem.error(escape(error))
        write_url()
        return None
    convention = choose_convention(steps)
    write_url()
    return Given(steps, (channels, size, size), outputs, batch, convention)


def choose_convention(steps: tuple[Step, ...]) -> Convention:
    """Which weights a block that halves its picture is counted with: folded away, and asked only where there is such a block."""
    first: Convention = CONVENTIONS[0]
    if not any(isinstance(step, Block) and step.skip and step.stride > 1 for step in steps):
        return first
    with st.popover("How blocks are counted", icon=":material/tune:"):
        words = "The paper does not say how it counts them. The second way gives its printed numbers of ResNet18."
        name = "A block that halves its picture counts the weights"
        chosen = st.radio(name, CONVENTIONS, format_func=CONVENTION_NAMES.__getitem__, key=key("convention"), help=words)
    return chosen or first


def protect(given: Given) -> None:
    """What the counts advise: skips to cut, the most useful first, and fewer filters; each is one click."""
    steps = given.steps
    told = advice(steps, given.shape, given.outputs, batch=given.batch, convention=given.convention)
    blocks = [(place, step) for place, step in enumerate(steps) if isinstance(step, Block)]
    gone = [(number, place) for number, (place, block) in enumerate(blocks, 1) if not block.skip]
    few = [item for item in told.filters if item.most and item.most < item.now]
    now = analyse(unroll(steps, given.shape, given.outputs), batch=given.batch, convention=given.convention).index
    helping = [cut for cut in told.cuts if cut.index != now][:FIRST]
    if blocks:
        st.markdown("**Cut a skip, and the index becomes**", help="A skip carries the picture's features past its block.")
        with st.container(horizontal=True, gap="small"):
            for number, place in gone:
                whole = with_skip(steps, place, skip=True)
                words = f"Put the skip of block {number:d} back"
                st.button(words, key=f"back-{number}", on_click=put, args=(whole,), icon=":material/undo:")
            for cut in helping:
                cut_button(given, cut)
            if more := [cut for cut in told.cuts if cut not in helping]:
                with st.popover(f"{len(more)} more" if helping else f"{len(more)} that change nothing"):
                    for cut in more:
                        cut_button(given, cut)
    if few:
        st.markdown(
            "**With fewer filters, layer by layer is not enough**",
            help="This layer alone then has more unknowns than equations. An attack on the whole gradient may still find the picture.",
        )
        with st.container(horizontal=True, gap="small"):
            for item in few:
                fewer = with_filters(steps, item.step, item.most or 1)
                st.button(
                    f"conv{item.step + 1:d}: {item.most:d} filters instead of {item.now:d}",
                    key=f"filters-{item.step}",
                    on_click=put,
                    args=(fewer,),
                )


def cut_button(given: Given, cut: Cut) -> None:
    """One skip, cut by one click."""
    without = with_skip(given.steps, cut.step, skip=False)
    words = f"Block {cut.block:d}: {cut.index:,}"
    st.button(words, key=f"cut-{cut.block}", on_click=put, args=(without,), icon=":material/content_cut:")
