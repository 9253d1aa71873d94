"""The store's record of a visitor does not reveal the cookie."""

import hashlib

from leakage.runs.owners import owner_of


def test_an_owner_is_the_sha256_of_the_cookie() -> None:
    assert owner_of("abc") == "browser ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # NIST's example for "abc"


def test_any_cookie_that_a_browser_may_send_has_an_owner() -> None:
    for cookie in ("", "ä" * 5000, "\xff\x00", "a b;c"):
        assert owner_of(cookie) == f"browser {hashlib.sha256(cookie.encode()).hexdigest()}"
