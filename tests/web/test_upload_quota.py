"""Files sent to a session of a real server: files that no page asked for, and more than a session may hold."""

import http.client
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from home_fixtures import furnished
from home_processes import Server, place
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from leakage.runs.upload_quota import ALL_FULL, ALL_MB, FILE_MB, MB, NO_LENGTH, SESSION_FULL, SESSION_MB, UNASKED, UploadQuota

pytestmark = pytest.mark.processes
XSRF = "2|0123abcd|0123456789abcdef0123456789abcdef|1700000000"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[Server]:
    """With the Lab drawn once: what it loads is in memory."""
    with place(furnished(tmp_path_factory.mktemp("sent"), written)) as made:
        server = made.serve(alone=True)
        with opened(server) as page:
            page.wait("script_finished")
        yield server


class Page:
    """An open page: its session, and what it asks and sends."""

    def __init__(self, server: Server, socket: ClientConnection) -> None:
        self.server, self.socket = server, socket
        hello = BackMsg()
        hello.rerun_script.query_string = ""
        self.socket.send(hello.SerializeToString())
        self.session = self.wait("new_session").new_session.initialize.session_id

    def wait(self, kind: str) -> ForwardMsg:
        while True:
            data = self.socket.recv(timeout=240)
            assert isinstance(data, bytes)
            message = ForwardMsg.FromString(data)
            if message.WhichOneof("type") == kind:
                return message

    def addresses(self, count: int) -> list[str]:
        """Where files of a widget may be sent, as the page asks for them."""
        asking = BackMsg()
        asking.file_urls_request.request_id = uuid.uuid4().hex
        asking.file_urls_request.file_names.extend(f"{number}.png" for number in range(count))
        asking.file_urls_request.session_id = self.session
        self.socket.send(asking.SerializeToString())
        return [urls.upload_url for urls in self.wait("file_urls_response").file_urls_response.file_urls]

    def send(self, address: str, size: int, method: str = "PUT") -> tuple[int, str]:
        """Status and words of the answer to a file of so many bytes."""
        edge = uuid.uuid4().hex
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
        body = head.encode() + b"\0" * size + f"\r\n--{edge}--\r\n".encode()
        there = http.client.HTTPConnection("127.0.0.1", int(self.server.address.rsplit(":", 1)[1]), timeout=120)
        headers = {"Content-Type": f"multipart/form-data; boundary={edge}", "Origin": self.server.address}
        headers |= {"Cookie": f"_streamlit_xsrf={XSRF}", "X-Xsrftoken": XSRF}
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was read: the answer is there all the same
            there.request(method, address, body if method == "PUT" else None, headers)
        answer = there.getresponse()
        words = answer.read().decode()
        there.close()
        return answer.status, words


@contextmanager
def opened(server: Server) -> Iterator[Page]:
    address, own = server.address.replace("http", "ws") + "/_stcore/stream", [Subprotocol("streamlit")]
    with connect(address, origin=Origin(server.address), subprotocols=own, max_size=None, proxy=None, open_timeout=120) as socket:
        yield Page(server, socket)


def memory_mb(server: Server) -> float:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def test_files_that_no_page_asked_for_are_refused_and_take_no_memory(served: Server) -> None:
    """120 files of 10 MB under any names took 1.2 GB, and kept them when the page was closed."""
    with opened(served) as page:
        before = memory_mb(served)
        answers = {page.send(f"/_stcore/upload_file/{page.session}/{number}", 2 * MB) for number in range(60)}
        assert answers == {(403, UNASKED)}
        assert memory_mb(served) - before < 40  # MB: of 120, while the page is drawn


def test_a_session_may_hold_so_much_and_what_it_drops_makes_room(served: Server) -> None:
    with opened(served) as page:
        before = memory_mb(served)
        addresses = page.addresses(12)
        answers = [page.send(address, 9 * MB) for address in addresses]
        room = SESSION_MB // 9
        assert [status for status, _ in answers] == [204] * room + [413] * (12 - room)
        assert answers[-1][1] == SESSION_FULL
        assert memory_mb(served) - before < 64
        assert page.send(addresses[0], 0, "DELETE")[0] == 204
        assert page.send(addresses[-1], 9 * MB)[0] == 204
        assert page.send(addresses[-1], 9 * MB) == (403, UNASKED), "it has come: once is enough"
        assert page.send(page.addresses(1)[0], FILE_MB * MB + 2**17)[0] == 413


def test_of_one_session_nobody_sends_to_another(served: Server) -> None:
    with opened(served) as page, opened(served) as other:
        (address,) = page.addresses(1)
        assert page.send(address.replace(page.session, other.session), 10) == (403, UNASKED)


# ---------------------------------------------------------------- the quota by itself


def test_files_on_their_way_count_and_so_do_those_of_all_sessions() -> None:
    quota = UploadQuota()
    quota.expect("a", ["1", "2"])
    assert quota.refusal("a", "1", str(MB)) is None
    refused = quota.refusal("a", "1", "")
    assert refused == (411, NO_LENGTH)
    quota.coming["a"] = SESSION_MB * MB - 10
    assert quota.refusal("a", "1", "10") is None
    assert quota.refusal("a", "1", "11") is not None
    quota.coming.clear()
    for number in range(ALL_MB):
        quota.hold(f"session {number}", "file", MB)
    refused = quota.refusal("a", "1", "1")
    assert refused == (503, ALL_FULL)
    quota.drop_session("session 0")
    assert quota.refusal("a", "1", "1") is None


def test_a_session_cannot_ask_for_any_number_of_files_without_sending_them() -> None:
    quota = UploadQuota()
    quota.expect("a", map(str, range(1000)))
    assert list(quota.expected["a"]) == [str(number) for number in range(700, 1000)]
