/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Marks in the code of the tester: instructions that do nothing on a real CPU. QEMU shows each instruction to a plug-in
 * (libraries/podperf/counted_machine/plugin), which knows by these where a closed loop begins and ends, its bursts
 * and its windows.
 */
#ifndef PODPERF_MARKS_H
#define PODPERF_MARKS_H

/* In the front: `nopl LOOP_BEGINS(%rax)`, which reads no memory, and `nopl LOOP_ENDS(%rax)`. */
#define LOOP_BEGINS 0x70666230
#define LOOP_ENDS 0x70666530

/*
 * In the sender, of which the kernel makes `movabs $WINDOW_BEGINS, register`. The value is never used. A window begins
 * where a burst begins, just behind the mark of the burst.
 */
#define BURST_BEGINS 0x70666d61726b6230
#define WINDOW_BEGINS 0x70666d61726b7730

#endif
