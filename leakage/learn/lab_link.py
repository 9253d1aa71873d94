"""The address of an experiment in the Lab: the settings that differ from their defaults, under the names of its widgets."""

from urllib.parse import quote, urlencode

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import VERSION, Experiment
from leakage.spec.lab_settings import lab_settings, without_default_strategy


def lab_query(experiment: Experiment, known: Catalog | None) -> str | None:
    """Return the query, without "?", of the address that opens the Lab (the page for single experiments) with an experiment.

    It is None while the installed plug-ins (`known`) are not known, or if the Lab has no widgets for the experiment: uploads, pictures
    with a label of the user, several protections, one check twice, or another precision.
    """
    if known is None:
        return None
    usual = Experiment()
    uploads = any(picture.source == "upload" or picture.label is not None for picture in experiment.pictures)
    twice = len({part.id for part in experiment.checks}) < len(experiment.checks)
    if uploads or len(experiment.defenses) > 1 or twice or experiment.precision != usual.precision:
        return None
    before, settings = lab_settings(usual), lab_settings(without_default_strategy(experiment, known))
    differing = {name: value for name, value in settings.items() if before.get(name) != value}
    texts = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in differing.items()}
    return urlencode({"v": str(VERSION), **texts}, quote_via=quote, safe=":,@")
