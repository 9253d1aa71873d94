"""Wrong passwords: some a minute from one address, fewer if many addresses try, with the exact seconds to wait."""

from leakage.web.throttle import MAX_ADDRESSES, Throttle


def test_an_address_waits_until_its_oldest_try_is_a_minute_old() -> None:
    throttle = Throttle(per_address=3, in_all=100)
    for now in (0.0, 10.0, 20.0):
        assert throttle.seconds_to_wait("a", now) == 0
        throttle.record("a", now)
    assert throttle.seconds_to_wait("a", 20.5) == 40
    assert throttle.seconds_to_wait("b", 20.5) == 0
    assert throttle.seconds_to_wait("a", 60.0) == 0
    throttle.record("a", 60.0)
    assert throttle.seconds_to_wait("a", 60.0) == 10


def test_where_many_try_each_address_that_was_wrong_waits_a_minute_and_nobody_else() -> None:
    throttle = Throttle(per_address=3, in_all=5)
    for number in range(5):
        throttle.record(f"address {number}", float(number))
    assert throttle.seconds_to_wait("address 3", 10.0) == 53
    assert throttle.seconds_to_wait("another", 10.0) == 0
    assert throttle.seconds_to_wait("address 3", 61.0) == 0  # of the five, two are older than a minute


def test_it_forgets_what_is_older_than_a_minute_and_keeps_no_more_than_it_needs() -> None:
    throttle = Throttle(per_address=3, in_all=5)
    for number in range(1000):
        throttle.record("busy", 1.0 + number / 1000)
        throttle.record(f"address {number}", 1.0 + number / 1000)
    assert len(throttle.wrong["busy"]) == 3
    throttle.record("later", 70.0)
    assert list(throttle.wrong) == ["later"]


def test_of_very_many_addresses_those_are_forgotten_that_were_wrong_first() -> None:
    throttle = Throttle()
    for number in range(MAX_ADDRESSES + 10):
        throttle.record(f"address {number}", 1.0)
    assert len(throttle.wrong) == MAX_ADDRESSES
    assert "address 9" not in throttle.wrong
    assert "address 10" in throttle.wrong
