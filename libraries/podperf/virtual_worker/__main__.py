"""`python -m podperf.virtual_worker`: boot the virtual worker without a run, and keep it until Ctrl-C."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.testbed.run_lock import RunLock
from podperf.virtual_worker.boot import VirtualWorker, boot


def main() -> int:
    """Exit code 0 after Ctrl-C, 1 if the virtual worker does not boot or ends by itself."""
    try:
        with RunLock(), ExitStack() as undo:
            lab = boot(LocalHost(), lambda text: print(text, flush=True), undo)
            (worker,) = lab.workers
            assert isinstance(worker, VirtualWorker)
            for near, far in zip(lab.tester_ports, worker.ports, strict=True):
                print(f"{near.interface} in namespace {near.namespace} is cabled to its {far.interface} ({far.pci})")
            print(shlex.join(worker.ssh_command), flush=True)
            while True:  # show the lines of its console
                print(worker.process.receive(timeout=1e6), flush=True)
    except PodperfError as error:
        print(f"podperf: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
