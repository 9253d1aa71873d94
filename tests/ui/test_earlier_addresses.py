"""Addresses of earlier versions open with the same experiment, although names of fields have changed since."""

import pytest
from page_visits import Open, asked, fine, press_run
from small_problems import CATALOG

from leakage.runs.service import Service

DP_SGD = {"defense": "dp_sgd"}


@pytest.mark.parametrize(
    ("earlier", "today"),
    [
        ({**DP_SGD, "dp_sgd.sigma": "0.05"}, {**DP_SGD, "dp_sgd.noise_multiplier": "0.05"}),
        ({**DP_SGD, "dp_sgd.clip": "2.5", "seed": "3"}, {**DP_SGD, "dp_sgd.max_grad_norm": "2.5", "seed": "3"}),
        ({"attack": "dlg", "dlg.tries": "3"}, {"attack": "dlg", "dlg.restarts": "3"}),
        ({"attack": "idlg", "idlg.tries": "2", "idlg.steps": "40"}, {"attack": "idlg", "idlg.restarts": "2", "idlg.steps": "40"}),
        ({"defense": "pruning", "pruning.share": "0.7"}, {"defense": "pruning", "pruning.fraction": "0.7"}),
        ({"defense": "fed_cdp", "fed_cdp.sigma": "0.2"}, {"defense": "fed_cdp", "fed_cdp.noise_multiplier": "0.2"}),
    ],
    ids=lambda address: "&".join(f"{key}={value}" for key, value in address.items()),
)
def test_an_address_with_earlier_names_asks_for_the_same_experiment(
    door: Service, visit: Open, earlier: dict[str, str], today: dict[str, str]
) -> None:
    experiments = []
    for address in (earlier, today):
        at = visit(**address)
        fine(at)
        assert [warning.value for warning in at.warning] == []
        experiments.append(asked(door, press_run(at)).resolve(CATALOG))
    name, value = next((key.split(".")[1], value) for key, value in today.items() if "." in key)
    first, second = experiments
    assert first.digest() == second.digest()
    parts = [first.attack, *first.defenses]
    assert float(value) in [part.fields.get(name) for part in parts], "and not with its default"
