"""Which names in a Host header are those of this server."""

import socket

import pytest

from leakage.web.hosts import Address, Hosts, machine_names

PLAIN = Hosts(())
NAMED = Hosts(("class.example.org", "LAB.example.org:8501", "[fd00::1]:80"))


def allowed(hosts: Hosts, text: str) -> bool:
    address = Address.parse(text)
    return address is not None and hosts.allow(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8501", "192.168.1.7:8600", "[::1]:8501", "[fe80::1]", "localhost", "LOCALHOST:80", "localhost."]
)
def test_addresses_and_localhost_need_no_setting(host: str) -> None:
    assert allowed(PLAIN, host)
    assert allowed(NAMED, host)


def test_the_machines_own_name_needs_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "PC12.school.lan")
    assert machine_names() == {"pc12.school.lan", "pc12", "pc12.local"}
    assert allowed(Hosts(()), "pc12.local:8501")
    assert not allowed(Hosts(()), "pc13.local:8501")


@pytest.mark.parametrize(
    "host", ["evil.example.org:8501", "localhost.evil.example.org", "127.0.0.1.evil.example.org", "2130706433", "0x7f.1"]
)
def test_a_name_that_somebody_may_point_here_is_not_ours(host: str) -> None:
    assert not allowed(PLAIN, host)
    assert not allowed(NAMED, host)


def test_an_entry_allows_all_ports_or_its_own() -> None:
    assert allowed(NAMED, "class.example.org")
    assert allowed(NAMED, "Class.Example.Org:4711")
    assert allowed(NAMED, "lab.example.org:8501")
    assert not allowed(NAMED, "lab.example.org:8502")
    assert not allowed(NAMED, "other.class.example.org")


@pytest.mark.parametrize("text", ["", "a b", "a@b", "host:port", "host:123456", "a/b", "a?b", "[::1", "ho\u212ae", "a\r\nb", ":80"])
def test_what_is_no_name_with_a_port_is_not_read(text: str) -> None:
    assert Address.parse(text) is None


@pytest.mark.parametrize("entry", ["*", "*.example.org", "https://class.example.org", "a b"])
def test_an_entry_that_is_no_name_is_refused_with_an_example(entry: str) -> None:
    with pytest.raises(ValueError, match="LEAKAGE_ALLOWED_HOSTS must be names of this server") as refused:
        Hosts((entry,))
    assert repr(entry) in str(refused.value)
    assert "class.example.org,lab:8501" in str(refused.value)
