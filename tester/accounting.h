/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a received frame is counted. The BPF sink and the packet-ring engine use this same code.
 */
#ifndef PODPERF_ACCOUNTING_H
#define PODPERF_ACCOUNTING_H

#include "payload.h"

#define SEEN_FRAMES 16384 /* a duplicate is recognised if its original is one of this many last frames */

struct counters { /* one direction on one CPU */
	__u64 received, duplicated, reordered, corrupted, stray;
	__u64 latency_sum, latency_min, latency_max;
	__u64 histogram[HISTOGRAM_BUCKETS];
	__u64 group[MAX_GROUPS]; /* received frames of each group of flows, if there are several groups */
};

struct running { /* the trial that runs now */
	__u32 trial, groups;
};

struct arrivals { /* one direction, all CPUs */
	__u64 highest; /* extended sequence number */
	__u64 skipped; /* that of the last frame in whose place a later one came; 0: none. It may have come afterwards. */
	__u64 seen[SEEN_FRAMES];
};

/* Sequence numbers are extended to 64 bits. With this start value, a first frame with any number is a step forward. */
#define HIGHEST_AT_START 0xffffffffULL
#define NONE_LOST (~0ULL)

/* The number of the last frame of `sent` that did not come, or came after a later one. */
INLINE __u64 last_lost(const struct arrivals *arrivals, __u64 sent)
{
	if (arrivals->highest - HIGHEST_AT_START < sent)
		return sent - 1;
	return arrivals->skipped ? arrivals->skipped - HIGHEST_AT_START - 1 : NONE_LOST;
}

/*
 * Count one frame that arrived on the port where frames of `direction` leave the system under test. Returns 1 for a
 * test frame, and 0 for a frame of another sender.
 */
INLINE int account(const void *frame, const void *end, __u32 direction, const struct running *running, __u64 now,
		   struct counters *counters, struct arrivals *arrivals)
{
	__u16 trial = running->trial;
	__u32 groups = running->groups;
	struct head head;
	__u32 length = end - frame, sequence, index;
	const __u64 *word;
	__u64 check, latency, extended, key;
	__s32 step;

	if (frame + HEAD_END > end) {
		counters->stray++;
		return 0;
	}
	head.identity = LOAD(__u64, frame + HEADER_BYTES);
	head.moment = LOAD(__u64, frame + HEADER_BYTES + 8);
	sequence = head.identity;
	if ((head.identity >> 32 & ~1ULL) != SIGNATURE) {
		/* If only the signature is damaged, the frame still is a test frame. */
		head.identity = head_identity(direction, sequence);
		check = check_word(head, length);
		if ((__u16)head.moment == trial && LOAD(__u16, frame + HEADER_BYTES + 16) == check_short(check)) {
			counters->corrupted++;
			return 1;
		}
		counters->stray++;
		return 0;
	}
	check = check_word(head, length);
	if (LOAD(__u16, frame + HEADER_BYTES + 16) != check_short(check)) {
		counters->corrupted++;
		return 1;
	}
	if ((head.identity >> 32 & 1) != direction || (__u16)head.moment != trial) {
		counters->stray++;
		return 1;
	}
	if (has_trailer(length)) {
		word = word_at(frame, end, length - 8);
		if (word && *word != check) {
			counters->corrupted++;
			return 1;
		}
	}
	if (has_middle(length)) {
		word = word_at(frame, end, middle_offset(sequence, length));
		if (word && *word != ~check) {
			counters->corrupted++;
			return 1;
		}
	}

	step = sequence - (__u32)arrivals->highest;
	extended = arrivals->highest + step;
	key = (__u64)trial << 48 | (extended & TIME_MASK);
	if (__sync_lock_test_and_set(&arrivals->seen[extended & (SEEN_FRAMES - 1)], key) == key) {
		counters->duplicated++;
		return 1;
	}
	if (step < 0)
		counters->reordered++;
	else
		arrivals->highest = extended;
	if (step > 1)
		arrivals->skipped = extended - 1;
	counters->received++;
	if (groups > 1)
		counters->group[(extended - HIGHEST_AT_START - 1) % groups & (MAX_GROUPS - 1)]++;

	latency = (now - (head.moment >> 16)) & TIME_MASK;
	if (latency >> 47) /* negative, because the clocks of two CPUs differ a little */
		latency = 0;
	counters->latency_sum += latency;
	if (latency < counters->latency_min)
		counters->latency_min = latency;
	if (latency > counters->latency_max)
		counters->latency_max = latency;
	index = histogram_index(latency);
	if (index < HISTOGRAM_BUCKETS)
		counters->histogram[index]++;
	return 1;
}

#endif
