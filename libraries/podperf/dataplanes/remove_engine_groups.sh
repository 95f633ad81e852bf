#!/bin/sh
# Arguments: the name of a control group, and the controllers that version 2 had switched on before. Removes the empty
# group of this name in each hierarchy, with the groups below it, and switches other controllers off again.
name=$1
shift
until groups=$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$name") && [ -z "$groups" ]; do
    # shellcheck disable=SC2086 # folders, one a word
    find $groups -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.05
done
switches=/sys/fs/cgroup/cgroup.subtree_control
[ -e "$switches" ] || exit 0
while read -r controllers; do
    for controller in $controllers; do
        case " $* " in
            *" $controller "*) ;;
            *) echo "-$controller" >"$switches" 2>/dev/null ;; # one that others use meanwhile stays on
        esac
    done
done <"$switches"
