"""Keyword library: the Kubernetes cluster of a testbed."""

from __future__ import annotations

from contextlib import closing

from robot.api import logger
from robot.api.deco import keyword, library

from podperf import __version__
from podperf.errors import PodperfError
from podperf.kubernetes.api import log_in
from podperf.kubernetes.settings import pods_of_tester
from podperf.progress import Progress
from Testbed import open_run, requests_library

_SESSION = "API server"


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Cluster:
    """Asks the API server of the cluster in which the topology's tester is, by RequestsLibrary.

    ```robotframework
    *** Settings ***
    Library        RequestsLibrary
    Library        Cluster
    Suite Setup    API Server Should Be Ready
    ```
    """

    def __init__(self) -> None:
        self._expired = ""  # why the login is not valid any more

    @keyword
    def api_server_should_be_ready(self) -> None:
        """Ask the API server for `/readyz` and `/version`. Does nothing if the topology's tester is in no cluster.

        Fails if the API server does not answer within 10 s, refuses the login of the topology, or is not ready. Tests
        of the suite then fail with this reason, and start no pod.
        """
        if pods_of_tester(open_run().session.topology) is None:
            logger.info("the tester of this topology is in no cluster")
            return
        try:
            self.open_session_to_api_server(_SESSION)
            self._ask("/readyz")
            logger.info(f"the API server is ready: {self._ask('/version')}")
        except PodperfError as error:
            Progress().note(f"podperf: {error}")  # Robot's own console may be off
            raise

    @keyword
    def open_session_to_api_server(self, alias: str) -> None:
        """Make a session of RequestsLibrary with this `alias`, with the login of the topology.

        ```robotframework
        Open Session To API Server    cluster
        ${nodes} =    GET On Session    cluster    /api/v1/nodes
        ```

        The login is a token or a client certificate of the kubeconfig, or that of the pod in which podperf runs. The
        certificate of the API server is checked. No log shows the token. The suite must also import `RequestsLibrary`.
        """
        kind = pods_of_tester(open_run().session.topology)
        if kind is None:
            raise PodperfError("the tester of this topology is in no cluster (topologies/kubernetes.yaml)")
        with closing(log_in(kind.kubeconfig, kind.context)) as api:
            login, self._expired = api.http_login(), api.expired()
        session = requests_library().create_session(alias, login.url, verify=True, max_retries=0)
        login.apply(session)

    def _ask(self, path: str) -> str:
        """The answer to a question without an object."""
        answer = requests_library().get_on_session(_SESSION, path, expected_status="any")
        said = " ".join(answer.text.split())[:200]
        if not answer.ok:
            problem = f"the API server answers {answer.status_code} {answer.reason} to {answer.url}: {said}"
            raise PodperfError("; ".join(filter(None, (problem, self._expired if answer.status_code == 401 else ""))))
        return said
