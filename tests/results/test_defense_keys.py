"""Protections as text: menu entries from the catalog are read back from an address."""

from small_problems import CATALOG

from leakage.results.defense_keys import key_of, known_keys, parse_key, ready_made, strength_values


def test_one_number_gives_strengths_around_its_default_and_a_leading_word_its_options() -> None:
    keys = ready_made(CATALOG)
    assert keys[0] == "none"
    assert {"gaussian_noise", "gaussian_noise:scale=0.001", "gaussian_noise:scale=0.1"} <= set(keys)
    assert {"pruning", "pruning:fraction=0.5", "pruning:fraction=0.99"} <= set(keys)
    assert {"low_precision", "low_precision:number=fp16", "low_precision:number=bf16"} <= set(keys)
    assert {part.id for key in keys for part in parse_key(key, CATALOG)} == {entry.id for entry in CATALOG.defenses}


def test_every_protection_that_is_offered_is_read_back_from_the_address() -> None:
    keys = ready_made(CATALOG)
    assert [key_of(parse_key(key, CATALOG), CATALOG) for key in keys] == keys
    resolved = [
        tuple((part.id, *CATALOG.defenses.get(part.id).resolve(part.fields).items()) for part in parse_key(k, CATALOG)) for k in keys
    ]
    assert len(set(resolved)) == len(keys)  # none is offered twice
    assert known_keys([*keys, "pruning+no_such"], CATALOG) == keys


def test_values_are_spaced_inside_the_range_and_shares_near_one_by_what_they_leave() -> None:
    fields = {field.name: field for field in CATALOG.defenses.get("outpost").fields}
    assert strength_values(fields["prune_base"], (0.1, 1, 10), (5, 1, 0.1)) == [8, 80]  # 800 % is none
    (share,) = (field for field in CATALOG.defenses.get("pruning").fields if field.name == "fraction")
    assert strength_values(share, (0.1, 1, 10), (5, 1, 0.1)) == [0.5, 0.9, 0.99]
