"""The check before Streamlit's route for uploads."""

import re

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from leakage.runs.upload_quota import UploadQuota


class UploadGate:
    """Middleware that passes an upload to Streamlit's route if an open page expects this file and the quota of uploads has room for it."""

    def __init__(self, app: ASGIApp, *, quota: UploadQuota, base: str = "") -> None:
        self.app, self.quota = app, quota
        self.address = re.compile(rf"{re.escape(base)}/_stcore/upload_file/([^/]+)/([^/]+)/?")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = self.address.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if not match:
            await self.app(scope, receive, send)
            return
        session, file = match.groups()
        length = HTTPConnection(scope).headers.get("content-length", "")
        if refusal := self.quota.refusal(session, file, length):
            status, text = refusal
            await PlainTextResponse(text, status)(scope, receive, send)
            return
        with self.quota.on_its_way(session, int(length)):
            await self.app(scope, receive, send)
