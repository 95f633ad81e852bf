"""Connects a client of SSHLibrary (paramiko) to a machine, with the settings of the user's SSH client."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import paramiko

from podperf.errors import PodperfError
from podperf.hosts.ssh import SshHost
from podperf.hosts.ssh_login import Login, expanded


def connect(client: paramiko.SSHClient, login: Login) -> None:
    """Log in. Raises PodperfError with the reason if that fails, as for podperf's own commands."""
    with closing(SshHost(login)) as machine:
        machine.ask("true")
    asked = [*login.as_user, "ssh", "-G", *login.options, "-l", login.user, "--", login.address]
    settings: dict[str, list[str]] = {}
    for line in subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key, []).append(value)
    (host,), (port,), (user,) = settings["hostname"], settings["port"], settings["user"]
    client.set_missing_host_key_policy(paramiko.RejectPolicy())  # SSHLibrary's own login trusts every host key
    for file in map(expanded, settings["userknownhostsfile"][0].split()):
        if Path(file).exists():
            client.load_host_keys(file)
    keys = [file for file in map(expanded, settings["identityfile"]) if Path(file).is_file()]
    (proxy,) = settings.get("proxycommand", [""])
    if jump := settings.get("proxyjump"):
        proxy = f"ssh -W [{host}]:{port} {jump[0]}"
    try:
        client.connect(
            host,
            int(port),
            user,
            login.password,
            key_filename=keys,  # type: ignore[arg-type] # paramiko takes a list, too
            sock=paramiko.ProxyCommand(proxy.replace("%h", host).replace("%p", port)) if proxy else None,
            banner_timeout=login.timeouts.step,
        )
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise PodperfError(f"SSHLibrary cannot log in on {login.address}, and ssh can: {error}") from error
