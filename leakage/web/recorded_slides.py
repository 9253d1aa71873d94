"""A recorded run as pictures for slides."""

from leakage.learn.recordings import load, pictures_of
from leakage.results.captions import caption
from leakage.results.slides import Slide, Still
from leakage.spec.catalog import Catalog


def recorded_slide(name: str, known: Catalog) -> Slide:
    """Return the content of the slides that show a recorded run, given its name. Raises SpecError if it is missing or damaged."""
    recording, (private, *film) = load(name), pictures_of(name)
    columns, rows = recording.columns, recording.film.places
    scores = [*(columns["psnr"][row] for row in rows[:-1]), recording.end.scores.psnr]
    steps = [columns["step"][row] or 0 for row in rows]
    return Slide(
        title=recording.title,
        private=private,
        stills=[Still(*still) for still in zip(film, steps, scores, strict=True)],
        grey=recording.grey,
        word=recording.word,
        sent=recording.meta_event.entries,
        settings=caption(recording.experiment, known),
    )
