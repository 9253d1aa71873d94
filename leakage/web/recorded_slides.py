"""A recorded run as pictures for slides."""

from leakage.learn.recordings import load, pictures_of
from leakage.results.captions import caption
from leakage.results.slides import Slide, Still
from leakage.spec.catalog import Catalog


def recorded_slide(name: str, known: Catalog) -> Slide:
    """What slides show of the recorded run of that name. Raises SpecError when it is missing or damaged."""
    recording, (private, *film) = load(name), pictures_of(name)
    columns, places = recording.columns, recording.film.places
    scores = [*(columns["psnr"][place] for place in places[:-1]), recording.end.scores.psnr]
    steps = [columns["step"][place] or 0 for place in places]
    return Slide(
        title=recording.title,
        private=private,
        stills=[Still(*one) for one in zip(film, steps, scores, strict=True)],
        grey=recording.grey,
        word=recording.word,
        sent=recording.meta_event.entries,
        settings=caption(recording.experiment, known),
    )
