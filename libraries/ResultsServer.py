"""Keyword library: sends the records of a run to a results server."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from robot.api import logger
from robot.api.deco import keyword, library
from robot.api.types import Secret

from podperf import __version__
from podperf.errors import PodperfError
from podperf.figures import count
from podperf.http_login import HttpLogin, bearer
from podperf.progress import Progress
from Testbed import open_run, requests_library, testbed_is_open

_SESSION = "results server"


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class ResultsServer:
    """Sends the records of a run to a results server, by RequestsLibrary.

    ```robotframework
    *** Settings ***
    Library    RequestsLibrary
    Library    ResultsServer

    *** Variables ***
    ${TOKEN: Secret}    %{PODPERF_RESULTS_TOKEN=}
    ```

    `docs/results-server.md` says what the server gets.
    """

    @keyword
    def publish_results(self, server: str | None = None, token: Secret | None = None) -> None:
        """Post each record of the run to a `server`, as JSON, with the `token` of a login (`Authorization: Bearer`).

        By default, the topology names the server (`results.server`). Without a server nothing is sent. No log shows the
        token.

        Does nothing if no testbed is open, as in the tear-down of a suite that could not open it. Fails at the first
        record that the server does not accept within 10 s, or that it answers with another status than 200 to 299. All
        records stay in the folder of the results. The suite must also import `RequestsLibrary`.
        """
        if not testbed_is_open():
            logger.info("no testbed is open, so there are no records")
            return
        session = open_run().session
        url = server or session.topology.results_server
        if not url:
            logger.info("neither the topology nor the suite names a results server")
            return
        records = sorted((session.results / "records").glob("*.json"))
        published = 0
        try:
            _open_session(url, token.value if token is not None else "")
            for record in records:
                _post(record)
                published += 1
        except PodperfError as error:
            raise PodperfError(
                f"{published} of {count(len(records), 'record')} published: {error}; all are in {session.results}"
            ) from error
        Progress().note(f"podperf: published {count(len(records), 'record')} on {url}")


def _open_session(url: str, token: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise PodperfError("the results server has a URL that is none: a results server is https://NAME/PATH") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise PodperfError(f"{parts.hostname or 'the results server'}: a results server is https://NAME/PATH")
    header = bearer(token) if token else None
    session = requests_library().create_session(_SESSION, url, verify=True, max_retries=0)
    HttpLogin(url, lambda: header).apply(session)


def _post(record: Path) -> None:
    # RequestsLibrary writes text into the log, but of a file only the name. It closes the file.
    answer = requests_library().post_on_session(
        _SESSION,
        "",
        data=record.open("rb"),
        headers={"Content-Type": "application/json"},
        allow_redirects=False,
        expected_status="any",
    )
    if not 200 <= answer.status_code < 300:
        raise PodperfError(f"{answer.url} answers {answer.status_code} {answer.reason} to {record.name}")
