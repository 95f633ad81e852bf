#!/bin/bash
# Tries podperf as a new machine would: in_fresh_root.sh SUITE [command of podperf, with its arguments]
#
#   in_fresh_root.sh trixie                                           only the set-up, twice
#   in_fresh_root.sh noble run --include quick                        and a run
#   in_fresh_root.sh trixie test -e atest -- -m distribution          and tests
#
# SUITE is a Debian release that debootstrap knows, or noble: Ubuntu 24.04. The keys of noble are in the package
# ubuntu-keyring. The script copies the checkout into a minimal root of SUITE. The path there has a space in it. There
# the set-up runs twice, the second time without a network. Then the command runs, in a separate network namespace. The
# script prints the duration of each step. It ends with the exit code of the first failed step. Needs root.
#
# The bare root stays in PODPERF_ROOTS (/var/tmp/podperf-roots) for the next time. Everything else is gone at the end,
# also of an interrupted call: mounts, files, processes, hugepages. After SIGKILL, files stay, and the next call removes
# them.
set -euo pipefail

suite=${1:?which Debian release? for example bookworm}
here=$(dirname "$(readlink -f "$0")")
roots=${PODPERF_ROOTS:-/var/tmp/podperf-roots}

# In a separate mount namespace. Not in a PID namespace: the kernel's threads could not be pinned from there.
[ -n "${PODPERF_IN_FRESH_ROOT-}" ] || PODPERF_IN_FRESH_ROOT=yes exec unshare --mount "$0" "$@"
shift

# Root runs programs in the roots. So no other user may have made them.
umask 022
mkdir -p "$roots"
case $(stat -c '%u %A' "$roots") in
    '0 drwx'?-??-?) ;;
    *)
        echo "$roots must be a folder that only root can write: remove it, or name another one in PODPERF_ROOTS" >&2
        exit 1
        ;;
esac

if [ ! -d "$roots/$suite" ]; then
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

# Each call holds the lock of the scratch folder that it uses.
for old in "$roots"/scratch.*; do
    [ ! -d "$old" ] || flock --nonblock "$old" rm -rf "$old" || true
done
scratch=$(mktemp -d "$roots/scratch.XXXXXX")
root=$scratch/root
exec 9<"$scratch"
flock 9
job=''
measures=''
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap end EXIT

inhabitants() {
    local each
    for each in /proc/[0-9]*; do
        [ "$(readlink "$each/root")" != "$root" ] || echo "${each#/proc/}"
    done 2>/dev/null
}

# Processes first: the processes in the root use its mounts. An interrupted test or run gets time to undo its changes of
# the kernel. `clean` undoes the rest, also of a run that a failed test left. A set-up changes nothing outside the root.
end() {
    trap '' INT TERM HUP
    set +e
    local left deadline=$SECONDS
    if [ -n "$job" ]; then
        echo "$suite: interrupted; ending what runs..." >&2
        [ -z "$measures" ] || deadline=$((SECONDS + 20))
        disown "$job"
        kill -INT -- "-$job" 2>/dev/null
    fi
    while left=$(inhabitants) && [ -n "$left" ]; do
        [ $SECONDS -lt $deadline ] || xargs --no-run-if-empty kill -KILL <<<"$left" 2>/dev/null
        sleep 0.1
    done
    [ -z "$measures" ] || inside ./podperf clean >&2
    umount --recursive --lazy "$root" 2>/dev/null
    rm -rf --one-file-system "$scratch"
}

mkdir "$root" "$scratch/changes" "$scratch/work"
mount -t overlay overlay -o "lowerdir=$roots/$suite,upperdir=$scratch/changes,workdir=$scratch/work" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
# For the sysfs of the separate network namespace, which has no control groups of its own.
mkdir "$root/run/cgroup"
mount --rbind /sys/fs/cgroup "$root/run/cgroup"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root/host.crt"

checkout="/opt/pod perf"
mkdir -p "$root/$checkout"
git -C "$here" ls-files -z --cached --others --exclude-standard --full-name "$(git -C "$here" rev-parse --show-toplevel)" |
    tar -C "$(git -C "$here" rev-parse --show-toplevel)" --null --files-from - --create | tar -C "$root/$checkout" --extract

# A separate job. So a signal interrupts `wait` at once, and the job ends with this script.
inside() {
    local status=0 prefix=(setpriv --pdeathsig TERM)
    [ -z "${network-}" ] || prefix+=(unshare --net)
    set -m
    # shellcheck disable=SC2016 # expanded inside
    env --ignore-environment HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        PIP_CERT=/host.crt PIP_INDEX_URL="${PIP_INDEX_URL:-https://pypi.org/simple}" \
        http_proxy="${http_proxy-}" https_proxy="${https_proxy-}" no_proxy="${no_proxy-}" \
        "${prefix[@]}" chroot "$root" bash -c 'cd "$0" && exec "$@"' "$checkout" "$@" </dev/null &
    job=$!
    set +m
    wait "$job" || status=$?
    job=''
    return $status
}

timed() {
    local start=$EPOCHREALTIME status=0
    "${@:2}" || status=$?
    printf '%s: %s took %.1f s\n' "$suite" "$1" "$(awk "BEGIN { print $EPOCHREALTIME - $start }")"
    return $status
}

timed 'set-up' inside ./podperf set-up
# The tests need further packages, which come from the network.
[ "${1-}" != test ] || timed 'set-up of the tests' inside ./podperf test --notest "${@:2}"
network=own
timed 'second set-up, offline' inside ./podperf set-up
measures=$*
[ $# = 0 ] ||
    timed "$1" inside sh -c 'mount -t sysfs sysfs /sys && mount --rbind /run/cgroup /sys/fs/cgroup &&
        ip link set lo up && exec ./podperf "$@"' sh "$@"
