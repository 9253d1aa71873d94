"""Wrong passwords: some a minute from one address, more from all together, and the time to wait is told to the second."""

from leakage.web.throttle import Throttle


def test_an_address_waits_until_its_oldest_try_is_a_minute_old() -> None:
    throttle = Throttle(per_address=3, in_all=100)
    for now in (0.0, 10.0, 20.0):
        assert throttle.wait("a", now) == 0
        throttle.note("a", now)
    assert throttle.wait("a", 20.5) == 40
    assert throttle.wait("b", 20.5) == 0
    assert throttle.wait("a", 60.0) == 0
    throttle.note("a", 60.0)
    assert throttle.wait("a", 60.0) == 10


def test_all_together_wait_too_however_many_addresses_somebody_has() -> None:
    throttle = Throttle(per_address=3, in_all=5)
    for number in range(5):
        throttle.note(f"address {number}", float(number))
    assert throttle.wait("another", 10.0) == 50
    assert throttle.wait("another", 60.0) == 0


def test_it_remembers_no_more_tries_than_it_needs() -> None:
    throttle = Throttle(per_address=3, in_all=5)
    for number in range(1000):
        throttle.note(str(number), 1.0)
    assert len(throttle.tries) == 5
