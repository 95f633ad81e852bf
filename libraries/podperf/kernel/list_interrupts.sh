#!/bin/sh
# Argument: a PCI address. Prints each interrupt of the device that is in use, and its CPU list.
for i in $(ls "/sys/bus/pci/devices/$1/msi_irqs" 2>/dev/null || cat "/sys/bus/pci/devices/$1/irq"); do
    [ -r "/proc/irq/$i/smp_affinity_list" ] && echo "$i $(cat "/proc/irq/$i/smp_affinity_list")"
done
:
