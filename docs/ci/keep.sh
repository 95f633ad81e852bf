#!/bin/sh
# Keeps the records of a run in a history, and prints the folder of the history.
#
#   docs/ci/keep.sh RESULTS HISTORIES BUILD JOB BRANCH TOPOLOGY
#
# Each job, branch and testbed has a history of its own: HISTORIES/JOB/BRANCH/TOPOLOGY@MACHINE. A run's folder has the
# time in its name, because a server can number its builds from 1 again. The newest 200 runs stay.
set -eu
results=$1 histories=$2 build=$3 job=$4 branch=$5 topology=$6

# The / of feature/a has a code. Otherwise the history of `feature` would contain that of `feature/a`.
series=$histories/$(printf '%s\n' "$job" "${branch:-none}" "$topology@$(uname -n)" | sed 's,%,%25,g; s,/,%2F,g' | paste -sd /)
run=$series/$(date -u +%Y-%m-%dT%H-%M-%S)-$build
mkdir -p "$series"
mkdir "$run"
cp -r "$results/records" "$run/"
find "$series" -mindepth 1 -maxdepth 1 -type d -name '20*' | sort | head -n -200 | xargs -rd '\n' rm -r --
echo "$series"
