"""The end of a run: the machines are given back, and the reports are written."""

from __future__ import annotations

from podperf.errors import PodperfError
from podperf.printable import printable
from podperf.records import record_files
from podperf.report.command import summary, write_reports
from podperf.run.session import Session


def give_back(session: Session) -> list[str]:
    """Give the machines back. Returns a message if that fails."""
    try:
        session.close()
    except Exception as error:  # Robot Framework makes an exception of a signal, too: the reports are still due
        return [f"podperf: {printable(str(error))}; once: sudo ./podperf clean {session.topology.path}"]
    return []


def reports(session: Session) -> list[str]:
    """Write the reports. Returns the summary table and their paths."""
    results = session.results
    if not record_files(results / "records"):
        return ["there is no record, so there is nothing to report"]
    try:
        report = f"Conformance: {write_reports(results)}"
    except PodperfError as error:
        report = f"podperf: {error}"
    return [summary(results, session.progress.stream), report]
