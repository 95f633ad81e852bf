#!/bin/sh
# The program that an SSH client of podperf asks for a password (SSH_ASKPASS, ssh(1)). Its argument is the prompt. It
# knows no passphrase of a key. A client that the first one starts, to a jump host, does not get the password.
case $1 in
    *[Pp]assword*) [ "$PPID" = "$PODPERF_SSH_CLIENT" ] && printf '%s\n' "$PODPERF_SSH_PASSWORD" ;;
    *) exit 1 ;;
esac
