#!/bin/sh
# For `git bisect run`: does a frame cost more with this commit than with the good build? See docs/kernel-developers.md.
#
#     git bisect run PODPERF/docs/ci/bisect.sh COMPARISON COMMAND...
#
# COMMAND builds the commit. COMPARISON is a file for `podperf compare`: the good build, and this one.
# Ends with 0: not more; 3: more; 125: this commit cannot be built or measured; 252 and above: the bisection ends.
comparison=$1
shift
"$@" || exit 125
if [ "$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi
$as_root "$(dirname "$(readlink -f "$0")")/../../podperf" compare "$comparison"
code=$?
case $code in
    5 | 254) exit 125 ;; # undecided, or not measured
    *) exit $code ;;
esac
