"""The door before Streamlit's route for uploads: a file passes if its page asked for it and there is room."""

import re

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from leakage.runs.upload_quota import UploadQuota


class UploadGate:
    """Lets a file pass to Streamlit's route if its page asked for it and there is room."""

    def __init__(self, app: ASGIApp, *, quota: UploadQuota, base: str = "") -> None:
        self.app, self.quota = app, quota
        self.address = re.compile(rf"{re.escape(base)}/_stcore/upload_file/([^/]+)/([^/]+)/?")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self.address.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if not found:
            await self.app(scope, receive, send)
            return
        session, file = found.groups()
        length = HTTPConnection(scope).headers.get("content-length", "")
        if refusal := self.quota.refusal(session, file, length):
            status, words = refusal
            await PlainTextResponse(words, status)(scope, receive, send)
            return
        with self.quota.on_its_way(session, int(length)):
            await self.app(scope, receive, send)
