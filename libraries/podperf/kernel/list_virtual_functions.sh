#!/bin/sh
# Argument: the PCI address of a physical function. Prints the addresses of its virtual functions, in their order.
number=0
while each=$(readlink "/sys/bus/pci/devices/$1/virtfn$number"); do
    basename "$each"
    number=$((number + 1))
done
