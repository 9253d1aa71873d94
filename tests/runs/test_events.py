"""Events: only finite numbers get into the store, events of older programs are read, and the JavaScript types are up to date."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sample_events import EXAMPLES, frame, note
from store_rows import queued, run

from leakage.runs.event_log import dumps
from leakage.runs.event_parts import CheckFacts, Ending, EventPart, FrameScores, finite
from leakage.runs.event_types import TYPES, declarations
from leakage.runs.events import (
    ALL,
    AttackEnd,
    EndEvent,
    FrameEvent,
    MetaEvent,
    NoteEvent,
    ProgressEvent,
    RoundEvent,
    RunEvent,
    StateEvent,
    TrainingEnd,
)
from leakage.runs.store import Store
from leakage.settings import ROOT

EVERY = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
RECORDED = json.loads((ROOT / "tests" / "recorded.json").read_text())  # as the server sends it, without the pictures
GRADIENT = (  # of a GradientRank
    *("rank", "unknowns", "directions", "sent"),
    *(f"above.{place}.{name}" for place in (0, 1) for name in ("share", "directions")),
)
CELLS = tuple(f"{row}.{column}" for row in (0, 1) for column in (0, 1))
TENSOR = (
    *("shape.0", "shape.1", *(f"agreed.{place}" for place in CELLS)),
    *(f"copies.0.{name}" for name in ("clients.0", "clients.1", "changed_rows", "zero_rows", "flat_rows")),
    *(f"copies.0.{name}.{place}" for name in ("moved", "cells") for place in CELLS),
)
REQUIRED = {  # numbers without which an event makes no sense: what is not finite raises
    "MetaEvent": {
        *("batch", "size", "channels", "classes", "steps", "pictures.0.label", "lineup.size", "epsilon.delta", "epsilon.times"),
        *("received.entries", "received.bytes", "received.layers.0.shape.0", "received.layers.0.strip.0", "received.layers.0.strip.1"),
        *("received.singles.0.0", "received.singles.0.1", "checks.0.threshold", "checks.0.round"),
    },
    "StateEvent": {"position"},
    "FrameEvent": {"step", "seconds", "labels.0"},
    "ThinnedEvent": {"kept.0", "kept.1"},
    "AttackEnd": {*("answer", "step", "steps", "seconds", "labels.0"), "ending.checks.0.threshold", "ending.checks.0.round"},
    "TrainingMetaEvent": {"rounds"},
    "ProgressEvent": {"done", "seconds"},
    "RoundEvent": {"done", "seconds", "accuracy"},
    "InverterEnd": {"mse", "mse_mean", "seconds"},
    "TrainingEnd": {"rounds", "seconds", "accuracy", "privacy.delta", "privacy.rate", "privacy.steps", "privacy.uses"},
    "TurnEvent": {"number", "layers"},
    "RankEvent": {"rank"},
    "MovedEvent": {"done", "directions"},
    "GradientRankEvent": {f"measured.{place}" for place in GRADIENT},
    "RanksEnd": {"ranks.conv1", "seconds", *(f"gradient.{place}" for place in GRADIENT)},
    "FindingEvent": {"count", "labels.0", "steps", "seconds"},
    "AuditEnd": {"tried", "answered", "seconds"},
    "HandedModelEnd": {f"layers.0.tensors.0.{place}" for place in TENSOR},
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    queued(made, "a")
    yield made
    made.close()


def numbers(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where numbers stand."""
    if isinstance(value, dict | list):
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(one, (*place, name))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place


def changed(value: Any, place: tuple[str | int, ...], new: Any) -> Any:
    """The same with `new` at that place."""
    if not place:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = changed(value[place[0]], place[1:], new)  # type: ignore[index]
    return copy


def strictly(text: str) -> Any:
    """As a browser reads JSON."""

    def fail(word: str) -> None:
        raise AssertionError(f"{word} in {text[:200]}")

    return json.loads(text, parse_constant=fail)


def bodies(store: Store) -> list[str]:
    """All that is stored as JSON."""
    db = store.database.read()
    found = [row[0] for table in ("events", "notes") for row in db.execute(f"SELECT body FROM {table}")]
    return [*found, *(row[0] for row in db.execute("SELECT result FROM runs WHERE result IS NOT NULL"))]


def filled(model: type[EventPart], given: dict[str, Any]) -> bool:
    """Whether an example has every field of its model."""
    return {*model.model_json_schema()["properties"]} - {"kind", "run", "seq", "picture"} == {*given}


# ---------------------------------------------------------------- finite


@EVERY
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_number_that_is_not_finite_enters_the_store(store: Store, kind: type[RunEvent], bad: float) -> None:
    """At every place of every kind: where the number may be unknown it becomes null, else the event is refused."""
    example, refused = EXAMPLES[kind.__name__], set()
    assert filled(kind, example)
    for place in numbers(example):
        try:
            made = kind.model_validate(changed(example, place, bad))
        except ValidationError:
            refused.add(".".join(map(str, place)))
            continue
        seq = store.add_event("a", made)
        (heard,) = store.events(["a"], seq - 1)
        told: Any = heard
        for step in place:
            told = told[step]
        assert told is None, place
        if isinstance(made, EndEvent):
            store.claim("0:1")
            store.finish("a", "done", result=made)
            store.drop("a", "me")
            queued(store, "a")
    assert refused == REQUIRED.get(kind.__name__, set())
    for body in bodies(store):
        strictly(body)


def test_what_got_around_the_checks_of_a_model_is_refused_by_the_store(store: Store) -> None:
    store.claim("0:1")
    before = bodies(store)
    broken = RoundEvent.model_construct(done=1.0, loss=None, seconds=1.0, accuracy=math.nan)
    ended = TrainingEnd.model_construct(accuracy=math.inf)
    for refused in (
        lambda: store.add_event("a", broken),
        lambda: store.add_frame("a", FrameEvent.model_construct(step=1, seconds=-math.inf, loss=1.0), b"png"),
        lambda: store.finish("a", "done", result=ended),
        lambda: store.put_note("speeds", {"lenet": [math.nan, 1.0]}),
    ):
        with pytest.raises(ValueError, match="not JSON compliant"):
            refused()
    assert bodies(store) == before


def test_finite_looks_into_lists_and_dictionaries() -> None:
    assert finite({"a": [1.0, math.nan, {"b": (math.inf, "word", None, 3)}]}) == {"a": [1.0, None, {"b": [None, "word", None, 3]}]}
    assert dumps(finite([-math.inf])) == "[null]"


# ---------------------------------------------------------------- written and read


@EVERY
def test_what_is_written_is_what_is_read_and_what_a_page_hears(store: Store, kind: type[RunEvent]) -> None:
    example = EXAMPLES[kind.__name__]
    seq = store.add_event("a", kind.model_validate(example))
    (read,) = store.events_of("a", kind)[-1:]
    assert (read.run, read.seq, read.kind) == ("a", seq, kind.kind_name())
    assert strictly(dumps(read.body())) == example
    (heard,) = store.events(["a"], seq - 1)
    assert {name: value for name, value in heard.items() if name != "picture"} == {**example, "run": "a", "seq": seq, "kind": read.kind}


def test_a_field_that_was_not_given_is_not_sent(store: Store) -> None:
    """The page tells by it which frames were measured thoroughly."""
    seq = store.add_event("a", frame(1, scores={"psnr": 9.0, "ssim": math.nan}, verdict=None, views={}))
    (heard,) = store.events(["a"], seq - 1)
    assert heard == {
        **{"step": 1, "seconds": 0.1, "loss": 1.0, "scores": {"psnr": 9.0, "ssim": None}},
        **{"picture": False, "run": "a", "seq": seq, "kind": "frame"},
    }


def test_a_place_in_the_queue_is_heard_without_a_number() -> None:
    told = StateEvent(run="a", status="queued", position=2, wait=None).wire()
    assert told == {"run": "a", "kind": "state", "status": "queued", "position": 2, "wait": None}


def test_events_of_several_kinds_come_in_their_order(store: Store) -> None:
    for done in (0.5, 1.0, 1.5):
        store.add_event("a", ProgressEvent(done=done, loss=1.0, seconds=done))
        if done == 1:
            store.add_event("a", RoundEvent(done=done, loss=1.0, seconds=done, accuracy=0.5))
    assert [type(told).__name__ for told in store.events_of("a", ProgressEvent, RoundEvent)] == [
        *("ProgressEvent", "ProgressEvent", "RoundEvent", "ProgressEvent")
    ]
    assert [told.accuracy for told in store.events_of("a", RoundEvent)] == [0.5]
    assert store.events_of("b", RoundEvent) == []


def test_frames_know_their_numbers_and_whether_their_pictures_are_kept(store: Store) -> None:
    kept, gone = store.add_frame("a", frame(1), b"png"), store.add_event("a", frame(2))
    assert [(one.step, one.seq, one.picture) for one in store.frames("a")] == [(1, kept, True), (2, gone, False)]


# ---------------------------------------------------------------- older and newer programs


def test_an_event_of_another_version_is_read(store: Store) -> None:
    """Unknown fields are ignored, newer ones have defaults, and a NaN of old is one that is not known."""
    older = {"step": 1, "seconds": 0.5, "loss": math.nan, "scores": {"psnr": 9.0, "beauty": 3}, "temper": "calm"}
    with store.database.write() as db:
        db.execute("INSERT INTO events (run, kind, body) VALUES ('a', 'frame', ?)", (json.dumps(older),))
    (read,) = store.frames("a")
    assert (read.step, read.loss, read.scores, read.note, read.verdict) == (1, None, FrameScores(psnr=9.0), {}, None)


def test_every_event_of_a_run_is_read_as_it_was_written() -> None:
    kinds = {"meta": MetaEvent, "note": NoteEvent, "frame": FrameEvent}
    for event in RECORDED["events"]:
        heard = kinds[event["kind"]].model_validate(event).wire()
        assert strictly(dumps(heard)) == {name: value for name, value in event.items() if name not in ("seq", "png")}
    meta = MetaEvent.model_validate(RECORDED["events"][0])
    assert (meta.knowledge.answers, meta.update.epsilon, meta.entries) == ((), None, 15826)
    assert meta.update.known is not None
    assert meta.update.known.relative_l2 == 0  # nothing protects: the attacker works with the gradient itself
    end = AttackEnd.model_validate(RECORDED["run"]["result"])
    assert end.verdict is not None
    assert end.verdict.word == "recognizable"


def test_the_first_event_of_an_attack_has_groups_in_python_and_none_where_it_is_written(store: Store) -> None:
    """A row as every version since 0.2.0 has written it is read into groups, and written again as the same row."""
    with store.database.write() as db:
        db.execute("INSERT INTO events (run, kind, body) VALUES ('a', 'meta', ?)", (json.dumps(EXAMPLES["MetaEvent"]),))
    meta = store.meta("a")
    assert meta is not None
    assert (meta.truth.private, meta.update.received.entries, meta.method.steps) == ("/api/runs/a/private.png", 5, 300)
    assert (meta.knowledge.weights, meta.environment.estimate, meta.judging.baselines["grey"].psnr) == ("untrained", 12.5, 10.5)
    assert strictly(dumps(meta.body())) == EXAMPLES["MetaEvent"]
    assert not {*meta.groups()} & {*meta.wire()}
    built = MetaEvent.model_validate({group: getattr(meta, group) for group in (*meta.groups(), "checks")})
    assert built.body() == meta.body()
    names = [name for part in meta.groups().values() for name in part.model_fields]
    assert len({*names}) == len(names) == len({*EXAMPLES["MetaEvent"]} - {"checks"})  # the only field outside a group


def test_a_run_without_checks_says_nothing_of_checks() -> None:
    """Neither what is written of a run without checks, nor what earlier programs wrote, has the field."""
    earlier = {name: value for name, value in EXAMPLES["MetaEvent"].items() if name != "checks"}
    read = MetaEvent.model_validate(earlier)
    assert read.checks == ()
    assert strictly(dumps(read.model_copy(update={"checks": ()}).body())) == earlier
    groups = {group: getattr(read, group) for group in read.groups()}
    assert strictly(dumps(MetaEvent.model_validate({**groups, "checks": ()}).body())) == earlier
    assert AttackEnd(ending=Ending(how="answer", words="Attack finished", checks=())).body()["ending"] == {
        "how": "answer",
        "words": "Attack finished",
    }
    assert AttackEnd.model_validate({"ending": {"how": "limit", "words": "Stopped"}}).ending == Ending(how="limit", words="Stopped")


def test_a_check_without_a_finite_number_is_written_and_read() -> None:
    found = CheckFacts(check="a", title="A", number=math.inf, threshold=0.5, tripped=True, round=1)
    assert found.number is None
    assert CheckFacts.model_validate_json(found.model_dump_json()) == found


def test_a_result_is_read_as_a_model_and_none_where_there_is_none(store: Store) -> None:
    assert run("b").outcome(AttackEnd) is None
    ended = run("b", result={"answer": 7, "scores": {"psnr": 9.0}, "note": {}}).outcome(AttackEnd)
    assert ended is not None
    assert (ended.answer, ended.scores.psnr, ended.scores.ssim, ended.seconds) == (7, 9.0, None, None)


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        note("words").text = "others"  # type: ignore[misc]


# ---------------------------------------------------------------- for JavaScript


def test_the_types_for_javascript_are_those_of_the_models() -> None:
    assert TYPES.read_text() == declarations(), "run `make docs`"


def test_the_types_tell_what_may_be_missing_null_or_anything() -> None:
    found = declarations()
    for line in (
        "  kind: 'frame';",
        "  step: number;",
        "  seq?: number;",
        "  loss: number | null;",
        "  psnr_each?: (number | null)[] | null;",
    ):
        assert line in found
    assert "  baselines: { [name: string]: BaselineScores };" in found
    assert "  singles?: number[][];" in found
    assert "  psnr_each?: (number | null)[] | null;" in found
    assert "export type RunEvent = StateEvent | NoteEvent | " in found
