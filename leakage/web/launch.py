"""The start of the web server from the command line. As a program, it waits for that server and then opens a browser."""

import importlib.util
import os
import subprocess
import sys
import time
import urllib.request
import webbrowser
from typing import NoReturn

from leakage.data.datasets import data_folder
from leakage.runs.private_home import keep_private
from leakage.runs.service import service
from leakage.settings import ROOT, settings

PATIENCE = 30.0  # seconds for which a browser waits for the server
MISSING = 'The dashboard needs Streamlit, which is not installed here. Run `pip install "gradient-leakage-explorer[app]"`.'


def start(host: str, port: int, *, headless: bool) -> NoReturn:
    """Replace this process by the web server, and open a browser unless `headless`.

    Streamlit reads .streamlit/config.toml in the working directory. The server therefore works in ROOT, and folders that environment
    variables name relative to the present working directory are made absolute first.

    Raises:
        RuntimeError: If Streamlit is not installed, or the store belongs to a newer version of the program.
    """
    if importlib.util.find_spec("streamlit") is None:
        raise RuntimeError(MISSING)
    keep_private(settings())
    service()  # opens the store once, so that it is migrated or refused before the server starts
    if not headless:
        subprocess.Popen([sys.executable, "-m", "leakage.web.launch", host, str(port)], stdin=subprocess.DEVNULL)
    folders = {"LEAKAGE_HOME": str(settings().home), "LEAKAGE_DATA": str(data_folder().resolve())}
    os.chdir(ROOT)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.address", host, "--server.port", str(port)]
    os.execve(sys.executable, command, {**os.environ, **folders})


def open_when_ready(host: str, port: int) -> None:
    """Open a browser as soon as the server responds, if there is a display. Streamlit opens none for an app with additional routes."""
    if sys.platform != "darwin" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    url = f"http://{'localhost' if host in ('0.0.0.0', '::') else host}:{port}"
    client = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        time.sleep(0.2)
        try:
            client.open(f"{url}/_stcore/health", timeout=1).close()
        except OSError:
            continue
        webbrowser.open(url)
        return


if __name__ == "__main__":
    open_when_ready(sys.argv[1], int(sys.argv[2]))
