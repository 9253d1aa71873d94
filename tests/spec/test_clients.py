"""The number of clients in a sum, if an experiment does not say it."""

from small_problems import CATALOG

from leakage.spec.experiment import Part, clients_of


def test_the_number_of_clients_is_the_given_one_or_the_plugins_default() -> None:
    assert clients_of(None, CATALOG) == 1
    assert clients_of(Part(id="secure_aggregation"), CATALOG) == 2  # SecureAggregation.clients
    assert clients_of(Part(id="secure_aggregation", fields={"clients": 5}), CATALOG) == 5
    assert clients_of(Part(id="gone"), CATALOG) == 1
