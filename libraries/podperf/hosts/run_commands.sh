#!/bin/sh
# Runs commands, one after another. Each is a line of shell code on standard input. After the command's output come a
# line with the mark "$1" and the exit code, the command's standard error, and a line with the mark alone.
# shellcheck disable=SC2034 # the lines use it in place of a newline
nl='
'
errors=$(mktemp) || exit
trap 'rm -f "$errors"' EXIT
while IFS= read -r command; do
    eval "$command" 2>"$errors"
    printf '\n%s %s\n' "$1" $?
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\n' "$line"
    done <"$errors"
    printf '%s\n' "$1"
done
