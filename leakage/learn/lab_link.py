"""An experiment as an address of the Lab: the settings that differ from their defaults, under the names that its widgets have."""

from urllib.parse import quote, urlencode

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import VERSION, Experiment
from leakage.spec.lab_settings import lab_settings, with_usual_unnamed


def lab_query(experiment: Experiment, known: Catalog | None) -> str | None:
    """What follows the "?" of the Lab's address; None where the Lab has no widgets for what is asked, or as long as nothing is known."""
    if known is None:
        return None
    usual = Experiment()
    uploads = any(picture.source == "upload" or picture.label is not None for picture in experiment.pictures)
    if uploads or len(experiment.defenses) > 1 or experiment.precision != usual.precision:
        return None
    before, settings = lab_settings(usual), lab_settings(with_usual_unnamed(experiment, known))
    differing = {name: value for name, value in settings.items() if before.get(name) != value}
    told = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in differing.items()}
    return urlencode({"v": str(VERSION), **told}, quote_via=quote, safe=":,@")
