"""The batch in the Lab: its size and pictures agree; uploads form it, have names and limits, and codes that delete them."""

import hashlib
import io
import re
from urllib.parse import urlsplit

import pytest
from page_visits import Open, asked, fine, press_run, words
from PIL import Image
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from leakage.data import uploads
from leakage.runs.service import Service, service
from leakage.ui.common.markdown import JOINER, escape
from leakage.ui.lab import chooser
from leakage.ui.lab.chooser import shown_name


def shades(*greys: int) -> list[tuple[str, bytes, str]]:
    """Files of one grey each, as a browser sends them."""
    files = []
    for grey in greys:
        file = io.BytesIO()
        Image.new("L", (16, 16), grey).save(file, "PNG")
        files.append((f"grey {grey}.png", file.getvalue(), "image/png"))
    return files


def picked(at: AppTest) -> list[str]:
    """The names of the batch's first three pictures, from the line under the cards."""
    (line,) = [caption.value for caption in at.caption if "(class: " in caption.value]
    return re.findall(r"(?:^|, )([^,]*?) \(class:", line)


def test_the_batch_size_and_the_pictures_agree_whoever_changes_them(door: Service, visit: Open) -> None:
    at = visit(pictures="gallery:coffee,gallery:rocket")
    assert at.number_input(key="batch").value == 2
    at.number_input(key="batch").set_value(3).run()
    fine(at)
    assert picked(at) == ["Coffee", "Rocket", "Astronaut"]  # the first of the list that was not there
    assert at.query_params["pictures"] == "gallery:coffee,gallery:rocket,gallery:astronaut"
    at.number_input(key="batch").set_value(1).run()
    assert picked(at) == ["Coffee"]
    for names in (["gallery:rocket"], ["gallery:rocket", "gallery:coffee"]):  # as the browser sends it
        at.session_state["picker"] = {"selected": {"ids": names, "click": float(len(names))}}
        at.run()
        fine(at)
        assert at.number_input(key="batch").value == len(names)
    assert picked(at) == ["Rocket", "Coffee"]
    assert len(asked(door, press_run(at)).pictures) == 2
    assert len(picked(at.run())) == 2  # a press is heard once
    fewer = visit(pictures="gallery:coffee,upload:gone", batch="2")
    assert (picked(fewer), fewer.number_input(key="batch").value) == (["Coffee"], 1)


def test_uploading_selects_what_was_uploaded_and_shows_the_names_of_the_files(door: Service, visit: Open) -> None:
    at = visit(pictures="gallery:coffee,gallery:rocket", source="upload")
    assert picked(at) == ["Coffee", "Rocket"]
    at.file_uploader(key="files-0").set_value(shades(10, 20, 30)).run()
    fine(at)
    assert picked(at) == ["grey 10.png", "grey 20.png", "grey 30.png"]
    assert at.number_input(key="batch").value == 3
    experiment = asked(door, press_run(at))
    ids = [hashlib.sha256(data).hexdigest()[:16] for _, data, _ in shades(10, 20, 30)]
    assert [(one.source, one.id) for one in experiment.pictures] == [("upload", id) for id in ids]
    assert "grey" not in experiment.model_dump_json()
    assert "grey" not in "".join(at.query_params["pictures"])


def test_what_is_picked_after_an_upload_stays_and_the_next_upload_joins_it(door: Service, visit: Open) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").set_value(shades(10, 20)).run()
    first, _ = at.session_state["pictures"]
    at.session_state["pictures"] = [first, "gallery:coffee"]
    at.run().run()
    assert picked(at) == ["grey 10.png", "Coffee"]
    at.file_uploader(key="files-0").set_value(shades(10, 20, 30)).run()
    fine(at)
    assert picked(at) == ["grey 10.png", "Coffee", "grey 30.png"]
    at.file_uploader(key="files-0").set_value(shades(10, 30)).run()
    at.number_input(key="batch").set_value(8).run()
    fine(at)
    assert (len(picked(at)), at.number_input(key="batch").value) == (3, 3)
    assert [toast.value for toast in at.toast] == ["There are only 3 pictures here to choose from."]


@pytest.mark.parametrize(
    ("address", "secure"),
    [
        ("https://gle.example.org/", True),
        ("http://localhost:8501/", True),
        ("http://127.0.0.1:8501/gle/", True),
        ("http://[::1]:8501/", True),
        ("http://gle.example.org:8501/", False),
        ("http://192.168.1.7:8501/", False),
        ("http://localhost.example.org/", False),
    ],
)
def test_a_camera_is_offered_on_secure_addresses_only(
    door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch, address: str, secure: bool
) -> None:
    monkeypatch.setattr(ContextProxy, "url", address)
    at = visit(source="upload")
    fine(at)
    assert len(at.camera_input) == secure
    assert ("browsers allow it on secure addresses only" in words(at)) != secure
    assert (
        f"The picture goes to {escape(urlsplit(address).netloc)}, which runs this page, and is kept there for 7 days at most" in words(at)
    ) == secure


def test_what_the_camera_takes_is_checked_and_run_as_an_upload_is(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContextProxy, "url", "http://localhost:8501/")
    at = visit(source="upload")
    file = io.BytesIO()
    Image.new("RGB", (16, 16), (200, 30, 30)).save(file, "JPEG")
    picture = file.getvalue()
    at.camera_input(key="camera-0").set_value(("words.jpg", b"words", "image/jpeg")).run()
    fine(at)
    assert at.error[0].value.startswith("Camera")
    at.camera_input(key="camera-0").set_value(("camera_input.jpg", picture, "image/jpeg")).run()
    fine(at)
    assert picked(at) == ["Camera"]
    (one,) = asked(door, press_run(at)).pictures
    assert (one.source, one.id) == ("upload", hashlib.sha256(picture).hexdigest()[:16])
    run = door.look(at.query_params["run"])
    assert run is not None
    assert not run.shareable
    next(button for button in at.button if button.label == "Delete them").click().run()
    fine(at)
    assert at.session_state["uploads"] == {}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("me.png", "me.png"),
        ("the whole family on the beach 2024.jpeg", "the whole family…2024.jpeg"),
        ("exe\u202egnp.png", "exegnp.png"),  # what turns the writing round
        ("a\n\tb.png", "ab.png"),
        ("\u200b", "Your picture"),
    ],
)
def test_the_name_of_a_file_is_short_and_printable(name: str, shown: str) -> None:
    assert shown_name(name) == shown


def test_the_name_of_a_file_is_no_markdown(door: Service, visit: Open) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").upload("[a](b) *c* :x: <i>.png", *shades(9)[0][1:]).run()
    fine(at)
    escaped = escape("[a](b) *c* :x: <i>.png")
    assert escaped.replace(JOINER, "") == r"\[a\](b) \*c\* :x: \<i>.png"
    assert picked(at) == [escaped]
    assert f"Class of {escaped}" in [box.label for box in at.selectbox]


def test_deleting_all_forgets_the_names_of_the_files(door: Service, visit: Open) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").set_value(shades(10)).run()
    assert [*at.session_state["upload_titles"].values()] == ["grey 10.png"]
    next(button for button in at.button if button.label == "Delete them").click().run()
    fine(at)
    assert at.session_state["upload_titles"] == at.session_state["uploads"] == {}


# ---------------------------------------------------------------- limits, codes, and how long


def test_the_page_says_how_long_uploads_are_kept(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "are kept here for 7 days at most, then deleted" in words(visit(source="upload"))
    monkeypatch.setenv("LEAKAGE_UPLOAD_DAYS", "1")
    service.cache_clear()
    said = words(visit(source="upload"))
    assert "are kept here for 1 day at most, then deleted" in said
    assert "otherwise it is deleted after 1 day at the latest." in said
    assert "7 days" not in said


def test_a_file_that_is_refused_is_looked_at_once(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").upload("bad.png", b"words", "image/png").run()
    said = at.error[0].value
    monkeypatch.setattr(uploads.sys, "executable", "/nowhere")  # nothing can be decoded any more
    assert at.run().error[0].value == said


def test_more_files_than_a_batch_are_left_out_with_a_sentence(door: Service, visit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chooser, "MAX_BATCH", 2)
    at = visit(source="upload")
    at.file_uploader(key="files-0").set_value(shades(10, 20, 30)).run()
    fine(at)
    assert at.error[0].value == (
        "You chose 3 files of 0 MB together; 2 files of 40 MB together are allowed. The last files are left out. To add them, remove other "
        "files."
    )
    assert picked(at) == ["grey 10.png", "grey 20.png"]


def test_a_code_stands_beside_each_upload_and_deletes_it_from_another_browser(door: Service, visit: Open) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").set_value(shades(10, 20)).run()
    codes = [block.value for block in at.code]
    assert len(set(codes)) == 2
    run = press_run(at).query_params["run"]
    assert [block.value for block in at.code][:2] == codes  # the same until the page is left
    other = visit("pages/runs.py", who="you")
    other.text_input(key="upload-code").set_value("0000-0000-0000")
    delete(other)
    assert other.error[0].value.startswith("No picture here has this code.")
    other.text_input(key="upload-code").set_value(codes[1].upper())
    delete(other)
    assert other.success[0].value == "Deleted: 1 run that used this picture, with all pictures and files."
    assert other.text_input(key="upload-code").value == ""
    assert door.look(run) is None


def test_a_picture_deleted_by_its_code_is_no_longer_in_this_browser_either(door: Service, visit: Open) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").set_value(shades(10)).run()
    (code,) = (block.value for block in at.code)
    at.switch_page("pages/runs.py").run()
    at.text_input(key="upload-code").set_value(code)
    delete(at)
    assert at.success[0].value == "No run here used this picture: there was nothing to delete."
    assert at.session_state["uploads"] == {}


def delete(at: AppTest) -> None:
    """Press the button of the form for a code."""
    next(button for button in at.button if button.label == "Delete").click().run()
    fine(at)
