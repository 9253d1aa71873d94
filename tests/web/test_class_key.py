"""The password, the cookie and the link to join: each opens, nothing else does, and a new password makes all void."""

import dataclasses
import hmac
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leakage.settings import Settings, settings
from leakage.web.class_key import ClassKey, home_key, join_path


@pytest.fixture
def config(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, slots=1, store_mb=16, memory_mb=0, password="seven blue cups")


def test_the_password_is_the_one_of_the_environment_and_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_PASSWORD", "seven blue cups")
    assert settings().password == "seven blue cups"
    assert "seven" not in repr(settings())


def test_password_cookie_and_link_open_and_are_not_each_other(config: Settings) -> None:
    key = ClassKey(config)
    assert key.is_password("seven blue cups")
    assert key.is_cookie(key.cookie)
    assert key.is_link(key.link)
    assert join_path(config) == f"/join?key={key.link}"
    assert len({key.cookie, key.link, config.password}) == 3
    for wrong in ("", "seven blue cup", "seven blue cups ", "Seven blue cups", "ä\udc80", key.cookie):
        assert not key.is_password(wrong)
    for wrong in ("", config.password, key.link, "ä"):
        assert not key.is_cookie(wrong)
    assert not key.is_link(key.cookie)


def test_comparisons_take_constant_time(config: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    key, compared = ClassKey(config), []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or real(a, b))
    assert not key.is_password("x")
    assert not key.is_password("x" * 1000)
    assert compared == [(64, 64), (64, 64)]  # digests: how long a try is makes no difference either
    assert not key.is_cookie("x")
    assert not key.is_link("x")
    assert len(compared) == 4


def test_it_outlives_a_restart_and_ends_with_the_password_or_the_home(config: Settings, tmp_path: Path) -> None:
    key, again = ClassKey(config), ClassKey(config)
    assert (key.cookie, key.link) == (again.cookie, again.link)
    changed = ClassKey(dataclasses.replace(config, password="eight"))
    elsewhere = ClassKey(dataclasses.replace(config, home=tmp_path / "other"))
    for other in (changed, elsewhere):
        assert not other.is_cookie(key.cookie)
        assert not other.is_link(key.link)


def test_the_key_is_random_its_owners_alone_and_the_same_for_all_processes(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(home_key, [tmp_path / "class.key"] * 40))
    (key,) = keys
    assert len(key) == 32
    assert (tmp_path / "class.key").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["class.key"]
    assert home_key(tmp_path / "other.key") != key


def test_without_a_password_there_is_no_link(config: Settings) -> None:
    with pytest.raises(RuntimeError, match="LEAKAGE_PASSWORD"):
        join_path(dataclasses.replace(config, password=""))
    assert not (config.home / "class.key").exists()


@pytest.mark.parametrize("damage", [b"", b"short"])
def test_a_key_that_was_cut_is_made_anew_and_said(damage: bytes, config: Settings, caplog: pytest.LogCaptureFixture) -> None:
    before = ClassKey(config)
    (config.home / "class.key").write_bytes(damage)
    after = ClassKey(config)
    assert len(after.key) == 32
    assert not after.is_cookie(before.cookie)
    assert "class.key is damaged: a new key replaces it" in caplog.text
