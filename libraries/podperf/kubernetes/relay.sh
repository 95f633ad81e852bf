#!/bin/sh
# Starts the program of a container that waits for it, and passes the program's input and output on. Ends when the
# program has ended. If the caller ends, so does the program's input.
# $1: the folder of the named pipes, by the same path here and in the container; $2: the program's command line, as a
# shell reads it.
exec 3<&0
trap 'kill $readers 2>/dev/null' EXIT
trap exit TERM
readers=
cat <&3 >"$1/input" 3<&- &
readers="$readers $!"
cat <"$1/errors" >&2 3<&- &
readers="$readers $!"
cat <"$1/output" 3<&- &
output=$!
readers="$readers $output"
printf "exec %s <'%s/input' >'%s/output' 2>'%s/errors'\n" "$2" "$1" "$1" "$1" >"$1/program"
wait "$output"
