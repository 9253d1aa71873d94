"""Failed tests are named at once: a run that is stopped before its end has still told what failed."""

import pytest


class EarlyFailures:
    """Writes the name of each failed test, and the first line of its error, while other tests still run."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self.terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            error = crash.message if crash else report.longreprtext.strip()
            self.terminal.ensure_newline()
            self.terminal.write_line(f"failed: {report.nodeid} ({report.when}): {error.splitlines()[0]}")
            self.terminal.flush()


@pytest.hookimpl(trylast=True)  # after pytest's own plug-in that writes to the terminal; the processes of pytest-xdist have none
def pytest_configure(config: pytest.Config) -> None:
    if terminal := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(EarlyFailures(terminal))
