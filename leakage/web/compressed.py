"""Responses that are compressed once for all visitors."""

import gzip
from collections.abc import Mapping
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response


def compressed(request: Request, data: bytes, type: str, headers: Mapping[str, str]) -> Response:
    """Return a response with this content, compressed if the browser accepts it."""
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(data, media_type=type, headers={**headers, "Vary": "Accept-Encoding"})
    return Response(_zipped(data), media_type=type, headers={**headers, "Vary": "Accept-Encoding", "Content-Encoding": "gzip"})


@lru_cache(maxsize=256)
def _zipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)
