"""120 files of 10 MB into one session, with and without a page that asked for them: the memory of the web process.

    .venv/bin/python benchmarks/load/unasked_uploads.py

BEFORE is what was found at commit f8a2e0e, when Streamlit's route took everything.
"""

import http.client
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import Site, until
from _table import save, say
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

FILES, MB = 120, 2**20
XSRF = "2|0123abcd|0123456789abcdef0123456789abcdef|1700000000"
BEFORE = {"unasked_grown_mb": 1191.3, "asked_grown_mb": 1200.1}


def wait(page: ClientConnection, kind: str) -> ForwardMsg:
    """Return the next message of that kind."""
    while True:
        data = page.recv(timeout=60)
        assert isinstance(data, bytes)
        message: ForwardMsg = ForwardMsg.FromString(data)
        if message.WhichOneof("type") == kind:
            return message


def send(site: Site, address: str) -> int:
    """Send a file of 10 MB; return the status of the answer."""
    edge = uuid.uuid4().hex
    head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
    body = head.encode() + b"\0" * (10 * MB - 1024) + f"\r\n--{edge}--\r\n".encode()
    there = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    headers = {"Content-Type": f"multipart/form-data; boundary={edge}", "Origin": site.address}
    with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was read
        there.request("PUT", address, body, headers | {"Cookie": f"_streamlit_xsrf={XSRF}", "X-Xsrftoken": XSRF})
    status = there.getresponse().status
    there.close()
    return status


def measure() -> dict[str, Any]:
    """Measure the megabytes by which the web process has grown; return the answers too."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        site = Site(Path(home))
        try:
            until(site.service.catalog, 120)
            found: dict[str, Any] = {}
            for how in ("unasked", "asked"):
                own = [Subprotocol("streamlit")]
                address = site.address.replace("http", "ws") + "/_stcore/stream"
                with connect(address, origin=Origin(site.address), subprotocols=own, max_size=None, proxy=None) as page:
                    hello = BackMsg()
                    hello.rerun_script.query_string = ""
                    page.send(hello.SerializeToString())
                    session = wait(page, "new_session").new_session.initialize.session_id
                    wait(page, "script_finished")
                    before = site.measure_memory()
                    addresses = [f"/_stcore/upload_file/{session}/{number}" for number in range(FILES)]
                    if how == "asked":
                        asking = BackMsg()
                        asking.file_urls_request.request_id, asking.file_urls_request.session_id = "1", session
                        asking.file_urls_request.file_names.extend(f"{number}.png" for number in range(FILES))
                        page.send(asking.SerializeToString())
                        addresses = [one.upload_url for one in wait(page, "file_urls_response").file_urls_response.file_urls]
                    answers = [send(site, address) for address in addresses]
                    found[f"{how}_grown_mb"] = round(site.measure_memory() - before, 1)
                    found[f"{how}_answers"] = {str(status): answers.count(status) for status in sorted(set(answers))}
            return found
        finally:
            site.end()


if __name__ == "__main__":
    result = measure()
    say(f"{result}")
    save("load_unasked_uploads", {"files": FILES, "mb_each": 10, "before": BEFORE, "now": result})
