"""Step 1 of the Lab as widgets: the private pictures, from the gallery, a data set or uploads, as a batch."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import accumulate

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from leakage.data.images import GALLERY_CLASSES, Item, PictureError, datasets, find, gallery, is_grey, thumbnail
from leakage.data.uploads import check_upload, printable
from leakage.runs.service import service
from leakage.runs.upload_quota import SESSION_MB
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import MAX_BATCH, SIZES, Channels, Picture, Side
from leakage.spec.lab_settings import PICKED
from leakage.ui.common.base_path import base
from leakage.ui.common.forms import KEPT, SOURCES
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.common.more_data import missing_sets, show_missing
from leakage.ui.common.session import owner
from leakage.ui.components.picker import picker, pressed
from leakage.ui.lab.camera import TITLE, take_picture
from leakage.ui.lab.gradient_order import choose_order

PER_PAGE = 40  # pictures of a data set on the page; more where the batch is larger
COLOURS: dict[Channels, str] = {3: "Colour", 1: "Grey"}
BATCH = (
    "How many pictures go into one gradient. Press + on a picture to add it. A larger number adds the next pictures of the list, "
    "a smaller number takes out the last pictures."
)
TOO_MANY = (
    "You chose {} files of {:.0f} MB together; {} files of {} MB together are allowed. The last files are left out. To add them, remove "
    "other files."
)
FRONT, BACK = 16, 9  # characters that are shown of a long file name: from its beginning, and from its end with the extension


def choose_pictures(
    *, counted: bool = True, count: int | None = None, known: Catalog | None = None
) -> tuple[list[Item], tuple[Picture, ...]]:
    """Draw the pictures of a source, and return the batch in the order of picking, as items with titles and as data.

    A larger batch size adds the next pictures of the list, a smaller one removes the last. Picking pictures changes the batch size. Both
    results are empty when no picture can be picked.

    Args:
        counted: The visitor may change the batch size; otherwise another widget of the page decides it.
        count: A fixed batch size, chosen elsewhere: one more picked picture then replaces the first.
        known: The catalog of plug-ins on a page with one model, by whose gradients the pictures of a data set can be ordered.
    """
    state = st.session_state
    missing = missing_sets(list(SOURCES))
    source = st.segmented_control(
        "Where the pictures come from",
        [name for name in SOURCES if name not in missing or name == state.get("source")],  # a link may name a source that is missing
        default="gallery",
        required=True,
        format_func=SOURCES.__getitem__,
        key="source",
        label_visibility="collapsed",
        width="stretch",
    )
    show_missing(missing)
    offered: list[Item] = []
    try:
        offered = available(source or "gallery", known)
    except PictureError as error:
        st.info(escape(error))
    new = pressed("picker")
    named = new or state.get(PICKED) or []
    wanted = [item for name in named if (item := resolve(name))]
    shown, thumbs = _readable([*(item for item in wanted if item not in offered), *offered])
    if not shown:
        return [], ()
    wanted = [item for item in wanted if name_of(item) in shown]
    if count:
        wanted = wanted[-count:]
    size = count or (len(wanted) if new and counted else state.get("batch", 1) - (len(named) - len(wanted)))
    picked = fitted([name_of(item) for item in wanted], list(shown), max(1, size))
    if len(picked) < size:
        st.toast(f"There are only {len(picked)} pictures here to choose from.")
    state[PICKED] = picked
    if state.get("batch") != len(picked):
        state["batch"] = len(picked)
    cards = [
        {"id": name, "title": item.title, "class_name": item.class_name, "alt": item.alt, "thumb": thumbs[name]}
        for name, item in shown.items()
    ]
    with st.container(height=184, border=False):
        picker(cards, picked, key="picker", limit=MAX_BATCH)
    if not count:
        st.number_input("Batch size", 1, MAX_BATCH, key="batch", persist_state=KEPT, disabled=not counted, help=BATCH)
    items = [shown[name] for name in picked]
    return items, tuple(_picture(item) for item in items)


def _readable(items: Iterable[Item]) -> tuple[dict[str, Item], dict[str, str]]:
    """Return the items that can be read and their thumbnails, both by name, and warn once about the others."""
    shown, thumbs, wrong = dict[str, Item](), dict[str, str](), list[PictureError]()
    for item in items:
        try:
            thumbs[name_of(item)] = thumbnail(item, upload=_bytes(item))
            shown[name_of(item)] = item
        except PictureError as error:
            wrong.append(error)
    if wrong:
        st.warning(escape(f"{len(wrong)} of these pictures are damaged and left out. {wrong[0]}"))
    return shown, thumbs


def fitted(picked: list[str], offered: list[str], size: int) -> list[str]:
    """Return `size` names: the first picked ones, or all of them filled up with the first other names on offer.

    >>> fitted(["c", "a"], ["a", "b", "c", "d"], 3)
    ['c', 'a', 'b']
    >>> fitted(["c", "a"], ["a", "b", "c", "d"], 1)
    ['c']
    """
    return [*picked, *(name for name in offered if name not in picked)][:size]


def choose_shape(items: list[Item]) -> tuple[Side, Channels]:
    """Draw one line about the batch and, behind a button, the format of its pictures; return the side in pixels and the channels."""
    with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small"):
        st.caption(describe(items) if items else "No picture chosen.")
        with st.popover("", icon=":material/tune:", help="Fine settings of the pictures", key="fine-pictures"):
            size = st.segmented_control("Size", SIZES, default=32, required=True, format_func=lambda side: f"{side:d} px", key="size")
            channels = st.segmented_control(
                "Colours", list(COLOURS), default=3, required=True, format_func=COLOURS.__getitem__, key="channels"
            )
    return size, channels


def available(source: str, known: Catalog | None) -> list[Item]:
    """Return the pictures of a source that can be picked; with a catalog, those of a data set in an order that the visitor chooses.

    Raises:
        PictureError: If a data set is damaged or not on this machine; the error says what to do.
    """
    if source == "gallery":
        return gallery()
    if source == "upload":
        return uploaded()
    data_set = datasets()[source]
    if not data_set.is_available:
        raise PictureError(data_set.remedy)
    count = max(PER_PAGE, st.session_state.get("batch", 1))
    if known and (ordered := choose_order(source, known)):
        return ordered[:count]
    last = data_set.count() - 1
    st.session_state["offset"] = min(st.session_state.get("offset", 0), last)  # the number may come from a larger data set
    first = st.number_input("Number of the first picture shown", 0, last, 0, PER_PAGE, key="offset", persist_state=KEPT)
    return data_set.items(int(first), count)


def uploaded() -> list[Item]:
    """Draw the file uploader and the camera, and return the checked uploads, each with the class that the visitor chose."""
    number = st.session_state.setdefault("uploaders", 0)
    files = st.file_uploader(
        "PNG, JPEG or WebP, up to 10 MB each",
        ["png", "jpg", "jpeg", "webp"],
        accept_multiple_files=True,
        key=f"files-{number}",
        help="If six or more pictures of one update are of one kind (faces, digits, scans, other pictures), the line-up consists of "
        "these pictures. The page learns the kind of a picture from the class that you choose for it.",
    )
    taken = take_picture(f"camera-{number}")
    st.caption(
        f"Your pictures go to the machine that runs this page and are kept here for {escape(service().config.upload_life)} at most, "
        "then deleted. If you delete their run, they are deleted at once. Use no real patient's picture."
    )
    before = _uploads()
    kept = _checked([*files, *([taken] if taken else [])], taken)
    _pick([f"upload:{name}" for name in kept if name not in before])
    for name in kept:
        _class_and_code(name)
    if kept:
        runs = link(Markdown("Your runs"), f"{base()}/runs")
        st.caption(
            f"Note the code of a picture. With the code you can delete the picture and its runs on the page {runs}, in another "
            "browser too. This helps if your browser has lost its cookie. The code is shown here only, and never again."
        )
    return [_upload(name) for name in kept]


def all_grey(pictures: Sequence[Picture]) -> bool:
    """Return whether all uploads among these pictures are grey, which means that their three channels are equal."""
    return all(is_grey(_uploads()[picture.id]) for picture in pictures if picture.id in _uploads())


def _checked(files: list[UploadedFile], taken: UploadedFile | None) -> dict[str, bytes]:
    """Return the valid files as they are stored, by id, and show what is wrong with the others. Each file is checked only once."""
    state, before, refused = st.session_state, _uploads(), dict[str, str]()
    kept, titles = dict[str, bytes](), dict[str, str]()
    with st.spinner("Looking at your pictures …"):
        for file in _allowed(files):
            name, title = hashlib.sha256(file.getvalue()).hexdigest()[:16], TITLE if file is taken else shown_name(file.name)
            try:
                if refusal := state.get("upload_refusals", {}).get(name):
                    raise PictureError(refusal)
                kept[name] = before[name] if name in before else check_upload(file.getvalue(), title)
                titles[name] = title
            except PictureError as error:
                refused[name] = str(error)
                st.error(escape(error))
    codes = state.get("upload_codes", {})
    state["uploads"], state["upload_titles"], state["upload_refusals"] = kept, titles, refused
    state["upload_codes"] = {name: codes.get(name) or service().codes.issue(owner(), name) for name in kept}
    return kept


def _allowed(files: list[UploadedFile]) -> list[UploadedFile]:
    """Return the first of these files, as many as the limits allow together, and show an error where some are left out."""
    sizes = [*accumulate(file.size for file in files)]
    most = min(MAX_BATCH, sum(size <= SESSION_MB * 2**20 for size in sizes))
    if most < len(files):
        st.error(escape(TOO_MANY.format(len(files), sizes[-1] / 2**20, MAX_BATCH, SESSION_MB)))
    return files[:most]


def _class_and_code(name: str) -> None:
    """Draw the menu for the class of an upload, and beside it the code that deletes the upload."""
    classes = st.session_state.setdefault("classes", {})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        classes[name] = st.selectbox(
            f"Class of {escape(st.session_state['upload_titles'][name])}",
            range(len(GALLERY_CLASSES)),
            classes.get(name, 6),
            format_func=GALLERY_CLASSES.__getitem__,
            key=f"class-{name}",
        )
        if code := st.session_state["upload_codes"][name]:
            st.code(code, language=None, width="content")


def shown_name(file: str) -> str:
    """Return a file name as pages show it: shortened, and without characters that cannot be printed or that reverse the text.

    >>> shown_name("the whole family on the beach 2024.jpeg")
    'the whole family…2024.jpeg'
    """
    name = printable(file)
    return (name if len(name) <= FRONT + BACK + 1 else f"{name[:FRONT]}…{name[-BACK:]}") or "Your picture"


def _pick(new: list[str]) -> None:
    """Add new uploads to the batch. Where the batch holds no upload yet, the new uploads replace it."""
    if new:
        picked = st.session_state.get(PICKED, [])
        picked = picked if any(name.startswith("upload:") for name in picked) else []
        st.session_state[PICKED] = list(dict.fromkeys([*picked, *new]))[-MAX_BATCH:]
        st.session_state["batch"] = len(st.session_state[PICKED])


def resolve(name: str) -> Item | None:
    """Return the picture with a name of the form "source:id", or None where it is not on this machine."""
    source, _, id = name.partition(":")
    if source == "upload":
        return _upload(id) if id in _uploads() else None
    with suppress(PictureError):
        return find(source, id)
    return None


def name_of(item: Item) -> str:
    """Return the name of a picture in session state and addresses: "source:id"."""
    return f"{item.source}:{item.id}"


def describe(items: list[Item]) -> Markdown:
    """Return one line with the titles and classes of the batch."""
    titles = [f"{item.title} (class: {item.class_name}{', chosen' if item.source == 'upload' else ''})" for item in items[:3]]
    return escape(", ".join(titles) + (f" and {len(items) - 3} more" if len(items) > 3 else ""))


def uploads_of(pictures: tuple[Picture, ...]) -> dict[str, bytes]:
    """Return the files of the uploads among these pictures, by id."""
    return {picture.id: _uploads()[picture.id] for picture in pictures if picture.id in _uploads()}


def _uploads() -> dict[str, bytes]:
    return st.session_state.get("uploads", {})  # type: ignore[no-any-return]


def _upload(id: str) -> Item:
    label = st.session_state.get("classes", {}).get(id) or 0
    title = st.session_state.get("upload_titles", {}).get(id, "Your picture")
    return Item("upload", id, title, label, GALLERY_CLASSES[label], f"A picture that you uploaded, {title}.")


def _bytes(item: Item) -> bytes | None:
    return _uploads().get(item.id) if item.source == "upload" else None


def _picture(item: Item) -> Picture:
    return Picture(source=item.source, id=item.id, label=item.label if item.source == "upload" else None)  # type: ignore[arg-type]
