#!/bin/sh
# Arguments: pairs of an interrupt and a CPU list. Prints the interrupts that the kernel moved.
while [ $# -gt 1 ]; do
    { echo "$2" >"/proc/irq/$1/smp_affinity_list"; } 2>/dev/null && echo "$1"
    shift 2
done
:
