#!/bin/bash
# Tries the set-up as a new machine would: in_fresh_root.sh SUITE [arguments of podperf run]
#
# SUITE is a Debian release that debootstrap knows, or noble: Ubuntu 24.04, whose keys are in the package ubuntu-keyring.
# The checkout is copied into a minimal root of it, with a space in its path. There the set-up runs twice, and the second
# time without a network. Then, where arguments follow, `podperf run` runs with them, in a network namespace of its own.
# Prints how long each took. Needs root.
#
# The bare root is kept in PODPERF_ROOTS (/var/tmp/podperf-roots) for the next time. All else is gone
# when this ends, mounts too.
set -euo pipefail

suite=${1:?which Debian release? for example bookworm}
shift
here=$(dirname "$(readlink -f "$0")")
roots=${PODPERF_ROOTS:-/var/tmp/podperf-roots}

if [ ! -d "$roots/$suite" ]; then
    mkdir -p "$roots"
    rm -rf "$roots/$suite.new"
    bootstrap=(debootstrap --variant=minbase)
    from=()
    if [ "$suite" = noble ]; then
        # Installers of Ubuntu enable universe. All its releases are made by the script of one, which debootstrap names.
        bootstrap+=("--components=main,universe" --keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg)
        from=("${PODPERF_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}" /usr/share/debootstrap/scripts/gutsy)
    fi
    "${bootstrap[@]}" "$suite" "$roots/$suite.new" "${from[@]}" >"$roots/$suite.log" ||
        { tail -n 5 "$roots/$suite.log" && exit 1; }
    mv "$roots/$suite.new" "$roots/$suite"
fi

if [ -z "${PODPERF_IN_FRESH_ROOT-}" ]; then
    scratch=$(mktemp -d "$roots/scratch.XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    PODPERF_IN_FRESH_ROOT=$scratch unshare --mount "$0" "$suite" "$@"
    exit
fi

# From here on in a mount namespace of our own. Not a PID namespace, where the kernel's threads could not be pinned.
scratch=$PODPERF_IN_FRESH_ROOT
root=$scratch/root
mkdir "$root" "$scratch/changes" "$scratch/work"
mount -t overlay overlay -o "lowerdir=$roots/$suite,upperdir=$scratch/changes,workdir=$scratch/work" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root/host.crt"

checkout="/opt/pod perf"
mkdir -p "$root/$checkout"
git -C "$here" ls-files -z --cached --others --exclude-standard --full-name "$(git -C "$here" rev-parse --show-toplevel)" |
    tar -C "$(git -C "$here" rev-parse --show-toplevel)" --null --files-from - --create | tar -C "$root/$checkout" --extract

inside() {
    # shellcheck disable=SC2016 # expanded inside
    env --ignore-environment HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        PIP_CERT=/host.crt PIP_INDEX_URL="${PIP_INDEX_URL:-https://pypi.org/simple}" \
        http_proxy="${http_proxy-}" https_proxy="${https_proxy-}" no_proxy="${no_proxy-}" \
        "${prefix[@]}" chroot "$root" bash -c 'cd "$0" && exec "$@"' "$checkout" "$@"
}

timed() {
    local start=$EPOCHREALTIME
    "${@:2}"
    printf '%s: %s took %.1f s\n' "$suite" "$1" "$(awk "BEGIN { print $EPOCHREALTIME - $start }")"
}

prefix=()
timed 'set-up' inside ./podperf set-up
prefix=(unshare --net)
timed 'second set-up, offline' inside ./podperf set-up
[ $# = 0 ] || timed 'run' inside sh -c 'mount -t sysfs sysfs /sys && ip link set lo up && exec ./podperf run "$@"' sh "$@"
