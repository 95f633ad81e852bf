#!/bin/sh
# Prints a bpftool that works. Ubuntu's is a wrapper, which fails without the tools of the running kernel. The bpftool
# of any other kernel serves as well.
for tool in bpftool /usr/lib/linux-tools*/bpftool /usr/lib/linux-tools/*/bpftool; do
    ! "$tool" version >/dev/null 2>&1 || {
        echo "$tool"
        exit
    }
done
exit 1
