"""The editor of a network: its steps, its input and output, and suggested changes as buttons; all settings are kept in the address."""

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
FIRST = 4  # this many skips are offered as buttons, the others in a popover
BATCH = "Every further picture adds numbers that the attacker has to find. The gradient that is sent does not get longer."
SETTINGS: dict[str, tuple[Any, ...]] = {  # name in the address -> allowed values, the default first
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
    """A network that can be built, the shape of its input (channels, height, width), its outputs and the batch."""

    steps: tuple[Step, ...]
    shape: tuple[int, int, int]
    outputs: int
    batch: int
    convention: Convention


def key(name: str) -> str:
    """Return the session key of a widget of this page; the prefix keeps it apart from the widgets of other pages."""
    return f"architecture.{name}"


def read_url() -> None:
    """Set the widgets from the page's address (URL) on a visitor's first run; a value that is not allowed becomes the default."""
    state, address = st.session_state, st.query_params
    if key("net") in state:
        return
    state[key("net")] = counts.lines(address.get("net", TEMPLATES[START]))
    for name, options in SETTINGS.items():
        state[key(name)] = next((option for option in options if str(option) == address.get(name)), options[0])


def write_url() -> None:
    """Write all settings that differ from their default into the page's address (URL)."""
    values = {name: (str(st.session_state.get(key(name), options[0])), str(options[0])) for name, options in SETTINGS.items()}
    values["net"] = (JOINT.join(st.session_state[key("net")].splitlines()), TEMPLATES[START])
    for name, (value, default) in values.items():
        if value == default:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != value:
            st.query_params[name] = value


def put(text: str) -> None:
    """Put a network into the editor."""
    st.session_state[key("net")] = counts.lines(text)


def put_template() -> None:
    """Put the chosen template into the editor; leave the editor alone if the menu was cleared."""
    if name := st.session_state[key("template")]:
        put(TEMPLATES[name])


def settings() -> Given | None:
    """Draw the cards of the network and of its input and output.

    Returns:
        The network; None if one of its lines is not a step or the network cannot be built, which the card then explains.
    """
    state = st.session_state
    read_url()
    with st.container(border=True, gap="small", key="step-1"):
        st.markdown("**1 · The network**")
        state[key("template")] = template_of(state[key("net")])
        placeholder = "Your own network"
        st.selectbox("Start from", list(TEMPLATES), index=None, placeholder=placeholder, key=key("template"), on_change=put_template)
        text = st.text_area("Layers of the network in their order, one per line", height=230, key=key("net"), help=GRAMMAR) or ""
        problem_box = st.container()
    with st.container(border=True, gap="small", key="step-2"):
        st.markdown("**2 · What goes in and out**")
        size = st.segmented_control("Size", SIZES, default=32, required=True, format_func=lambda side: f"{side:d} px", key=key("size"))
        with st.container(horizontal=True, gap="small"):
            channels = st.segmented_control(
                "Colours", list(COLOURS), default=3, required=True, format_func=COLOURS.__getitem__, key=key("channels")
            )
            outputs = st.number_input("Outputs", 1, MAX_CLASSES, key=key("outputs"), width=130)
        batch = st.slider("Pictures in one gradient", 1, MOST_PICTURES, key=key("batch"), help=BATCH)
    try:
        steps = parse(text)
        unroll(steps, (channels, size, size), outputs)
    except NetworkError as error:
        problem_box.error(escape(error))
        write_url()
        return None
    convention = choose_convention(steps)
    write_url()
    return Given(steps, (channels, size, size), outputs, batch, convention)


def choose_convention(steps: tuple[Step, ...]) -> Convention:
    """Ask how a block that halves its picture is counted, in a popover; return the default if there is no such block."""
    first: Convention = CONVENTIONS[0]
    if not any(isinstance(step, Block) and step.skip and step.stride > 1 for step in steps):
        return first
    with st.popover("How the weights in blocks of layers are counted", icon=":material/tune:"):
        explanation = (
            "The paper of R-GAP does not say which weights it counts in a block of layers that halves the size of the picture. The "
            "second choice gives the numbers that the paper prints for one network (ResNet18)."
        )
        name = "Weights counted in a block of layers that halves the size of the picture"
        chosen = st.radio(name, CONVENTIONS, format_func=CONVENTION_NAMES.__getitem__, key=key("convention"), help=explanation)
    return chosen or first


def protect(given: Given) -> None:
    """Draw a button for each change of the network that protects its input, by the counts of equations and unknowns.

    The changes are: remove the skip connection of a residual block (the most useful first), restore it, and use fewer filters.
    """
    steps = given.steps
    suggestions = advice(steps, given.shape, given.outputs, batch=given.batch, convention=given.convention)
    blocks = [(index, step) for index, step in enumerate(steps) if isinstance(step, Block)]
    without_skip = [(number, index) for number, (index, block) in enumerate(blocks, 1) if not block.skip]
    fewer_filters = [item for item in suggestions.filters if item.most and item.most < item.now]
    index_now = analyse(unroll(steps, given.shape, given.outputs), batch=given.batch, convention=given.convention).index
    useful_cuts = [cut for cut in suggestions.cuts if cut.index != index_now][:FIRST]
    if blocks:
        st.markdown(
            "**Cut a shortcut of the network (skip connection). Each button shows unknowns minus equations after the cut**",
            help="A shortcut (skip connection) carries what the network has found in the picture past a block of its layers.",
        )
        with st.container(horizontal=True, gap="small"):
            for number, index in without_skip:
                restored = with_skip(steps, index, skip=True)
                label = f"Restore the shortcut past block {number:d} (skip connection)"
                st.button(label, key=f"back-{number}", on_click=put, args=(restored,), icon=":material/undo:")
            for cut in useful_cuts:
                cut_button(given, cut)
            if other_cuts := [cut for cut in suggestions.cuts if cut not in useful_cuts]:
                with st.popover(f"{len(other_cuts)} more" if useful_cuts else f"{len(other_cuts)} that change nothing"):
                    for cut in other_cuts:
                        cut_button(given, cut)
    if fewer_filters:
        st.markdown(
            "**With fewer channels in a layer (filters), an attack that solves layer after layer lacks equations**",
            help="After this change the layer has more unknown numbers than equations. An attack that uses the whole gradient "
            "may still find the picture.",
        )
        with st.container(horizontal=True, gap="small"):
            for item in fewer_filters:
                fewer = with_filters(steps, item.step, item.most or 1)
                st.button(
                    f"conv{item.step + 1:d}: {item.most:d} filters instead of {item.now:d}",
                    key=f"filters-{item.step}",
                    on_click=put,
                    args=(fewer,),
                )


def cut_button(given: Given, cut: Cut) -> None:
    """Draw a button that removes the skip connection of a block; its label is the network's index (unknowns minus equations) without it."""
    changed = with_skip(given.steps, cut.step, skip=False)
    label = f"Block {cut.block:d}: {cut.index:,}"
    st.button(label, key=f"cut-{cut.block}", on_click=put, args=(changed,), icon=":material/content_cut:")
