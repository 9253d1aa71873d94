"""Step 1: which private pictures? Gallery, data sets and uploads, and a batch filled up from them."""

import hashlib

import streamlit as st

from leakage.pictures import GALLERY_CLASSES, Item, PictureError, check_upload, class_names, datasets, find, gallery, thumbnail
from leakage.spec import Picture
from leakage.ui.forms import PICKED, SOURCES
from leakage.ui.picker import picker

PER_PAGE = 40
MAX_BATCH = 32  # on this page; files may ask for more


def choose_pictures() -> tuple[Picture, ...]:
    """The batch: what was picked, in order, filled up to the batch size from the same source. Empty when there is nothing to pick."""
    source = st.segmented_control(
        "Where from",
        list(SOURCES),
        default="gallery",
        required=True,
        format_func=SOURCES.__getitem__,
        key="source",
        label_visibility="collapsed",
        width="stretch",
    )
    try:
        items = available(source or "gallery")
    except PictureError as error:
        st.info(str(error))
        return ()
    if not items:
        return ()
    names = [f"{item.source}:{item.id}" for item in items]
    wanted = [name for name in st.session_state.get(PICKED, _from_url()) if name in names] or names[:1]
    cards = [
        {
            "id": name,
            "title": item.title,
            "class_name": item.class_name,
            "alt": item.alt,
            "thumb": thumbnail(item, upload=_uploads().get(item.id)),
        }
        for name, item in zip(names, items, strict=True)
    ]
    with st.container(height=176, border=False):
        picked = picker(cards, wanted, key="picker", limit=MAX_BATCH) or wanted[:1]
    st.session_state[PICKED] = picked
    st.query_params["pictures"] = ",".join(picked)
    batch = st.number_input(
        "Batch size",
        1,
        MAX_BATCH,
        1,
        key="batch",
        bind="query-params",
        help="How many pictures are in the one gradient. The batch is filled up from the same place.",
    )
    spare = [name for name in names if name not in picked]
    chosen = [*picked, *spare[: max(0, batch - len(picked))]]
    by_name = dict(zip(names, items, strict=True))
    return tuple(_picture(by_name[name]) for name in chosen)


def available(source: str) -> list[Item]:
    """What can be picked from a source. Raises PictureError with the remedy when a data set is not on this machine or damaged."""
    if source == "gallery":
        return gallery()
    if source == "upload":
        return uploaded()
    data_set = datasets()[source]
    if not data_set.found:
        raise PictureError(data_set.remedy)
    first = st.number_input("From picture number", 0, data_set.count() - 1, 0, PER_PAGE, key="offset", bind="query-params")
    return data_set.items(int(first), PER_PAGE)


def uploaded() -> list[Item]:
    """Files from the visitor's own disk, checked; each with a class that the visitor chooses."""
    files = st.file_uploader("PNG, JPEG or WebP, up to 10 MB each", ["png", "jpg", "jpeg", "webp"], accept_multiple_files=True, key="files")
    st.caption("Pictures go to this machine only, and are deleted with their run, at the latest after 7 days.")
    kept = {}
    for file in files:
        try:
            data = check_upload(file.getvalue(), file.name)
        except PictureError as error:
            st.error(str(error))
            continue
        kept[hashlib.sha256(data).hexdigest()[:16]] = data
    st.session_state["uploads"] = kept
    classes = st.session_state.setdefault("classes", {})
    items = []
    for number, name in enumerate(kept, 1):
        label = st.selectbox(
            f"Class of picture {number}",
            range(len(GALLERY_CLASSES)),
            classes.get(name, 6),
            format_func=GALLERY_CLASSES.__getitem__,
            key=f"class-{name}",
        )
        classes[name] = label
        items.append(
            Item("upload", name, f"Your picture {number}", label, GALLERY_CLASSES[label], f"Your uploaded picture number {number}.")
        )
    return items


def describe(pictures: tuple[Picture, ...]) -> str:
    """One line on the batch, with its classes."""
    words = []
    for picture in pictures[:3]:
        if picture.source == "upload":
            words.append(f"your picture (class: {class_names('upload')[picture.label or 0]}, chosen)")
        else:
            item = find(picture.source, picture.id)
            words.append(f"{item.title} (class: {item.class_name})")
    more = f" and {len(pictures) - 3} more" if len(pictures) > 3 else ""
    return ", ".join(words) + more


def uploads_of(pictures: tuple[Picture, ...]) -> dict[str, bytes]:
    """The files of the uploads in a batch."""
    return {picture.id: _uploads()[picture.id] for picture in pictures if picture.id in _uploads()}


def _uploads() -> dict[str, bytes]:
    return st.session_state.get("uploads", {})  # type: ignore[no-any-return]


def _picture(item: Item) -> Picture:
    return Picture(source=item.source, id=item.id, label=item.label if item.source == "upload" else None)  # type: ignore[arg-type]


def _from_url() -> list[str]:
    return [name for name in st.query_params.get("pictures", "").split(",") if name]
