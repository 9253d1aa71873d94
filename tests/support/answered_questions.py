"""Questions of the page Ask with their planned runs, which ended in given ways."""

from dataclasses import replace

from small_problems import CATALOG

from leakage.results.asking import plan
from leakage.runs.event_parts import FrameScores, VerdictWords
from leakage.runs.events import AttackEnd
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.question import Question
from leakage.spec.words import CUT_SHORT, NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

NOISE = Part(id="gaussian_noise", fields={"scale": 0.01})
OFFICER = Question(clients=4, defenses=(NOISE,))
CLINICS = Question(who="scans", called="clinics", clients=4, defenses=(Part(id="dp_sgd", fields={"noise_multiplier": 0.01}),))


def planned(question: Question, seconds: float = 1.0, *, slots: int = 2) -> list[Experiment]:
    return plan(question, CATALOG, lambda _: seconds, slots=slots)


def ended(number: int, words: list[str], *, status: str = "done", seed: int = 1) -> Run:
    """Return a finished run on as many pictures as there are verdicts in `words`."""
    asked = Experiment(pictures=tuple(Picture(id=f"face-{place}") for place in range(len(words))), seed=seed).resolve(CATALOG)
    verdict = VerdictWords(
        word=min(words, key=[RECOGNIZABLE, SINGLED_OUT, PARTLY, NOT_SHOWN, CUT_SHORT].index), why="", meaning="", rule=""
    )
    verdict = verdict.model_copy(update={"each": tuple(words)})
    end = (
        AttackEnd(answer=1, seconds=3.0, scores=FrameScores(psnr=10.0), verdict=verdict).model_dump(mode="json")
        if status == "done"
        else None
    )
    return Run(
        id=f"run{number}", owner="me", kind="attack", digest=asked.digest(), version="1", experiment=asked.model_dump_json(), status=status,
        result=end, created=0.0, grp=None, shareable=True, estimate=None,
    )  # fmt: skip


def answering(question: Question, words: list[str]) -> Run:
    """Return the first run of a question, finished with these verdicts."""
    run = ended(1, words)
    (asked, *_) = planned(question)
    return replace(run, experiment=asked.model_dump_json(), digest=asked.digest())
