"""The cookie of a visitor: parsed, renewed if it cannot be ours, and restricted to https where there is https."""

import re
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from leakage.web.owner_cookie import OwnerCookie

GOOD = "kY3vZq0cT1mB7nWJ5xR2dg"


def said(_: object) -> PlainTextResponse:
    return PlainTextResponse("page", headers={"Set-Cookie": "theirs=1"})


def visitor(address: str = "http://localhost") -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", said)], middleware=[Middleware(OwnerCookie)])
    return TestClient(app, base_url=address)


@pytest.fixture
def plain() -> Iterator[TestClient]:
    with visitor() as client:
        yield client


def given(client: TestClient, path: str = "/", **headers: str) -> str:
    """The owner cookie that comes with a page, or nothing."""
    client.cookies.clear()
    answer = client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    assert "theirs=1" in answer.headers.get_list("set-cookie")
    return next((text for text in answer.headers.get_list("set-cookie") if text.startswith("gle_owner=")), "")


def test_no_script_and_no_other_site_gets_the_cookie(plain: TestClient) -> None:
    assert re.fullmatch(r"gle_owner=[\w-]{22}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax", given(plain))
    assert given(plain) != given(plain)


def test_the_cookie_is_secure_behind_tls_and_only_there(plain: TestClient) -> None:
    assert given(plain, X_Forwarded_Proto="https").endswith("; SameSite=Lax; Secure")
    assert given(plain, X_Forwarded_Proto="HTTPS, http").endswith("; Secure")
    assert "Secure" not in given(plain, X_Forwarded_Proto="http")
    with visitor("https://class.example.org") as client:
        assert given(client).endswith("; Secure")


def test_the_cookie_is_parsed_not_searched(plain: TestClient) -> None:
    assert given(plain, Cookie=f"a=1; gle_owner={GOOD}; b=2") == ""
    assert given(plain, Cookie=f"not_gle_owner={GOOD}") != ""
    assert given(plain, Cookie=f"a=gle_owner={GOOD}") != ""
    assert given(plain, Cookie=f'gle_owner="{GOOD}"') == ""


@pytest.mark.parametrize(
    "value", ["", "short", "x" * 65, "x" * 4000, "has space in the middle", "<script>alert(1)</script>", "../../../etc/pw"]
)
def test_what_cannot_be_ours_is_replaced(value: str, plain: TestClient) -> None:
    assert re.match(r"gle_owner=[\w-]{22};", given(plain, Cookie=f"gle_owner={value}"))


def test_only_pages_bring_it(plain: TestClient) -> None:
    assert given(plain, "/compare") != ""
    assert given(plain, "/gle/") != ""
    for path in ("/static/js/index.js", "/_stcore/health", "/api/runs/a/final.png"):
        assert given(plain, path) == ""
