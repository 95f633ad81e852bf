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
	__u64 latency_negative; /* received frames with a time of sending after their arrival; they have no latency */
	__u64 histogram[HISTOGRAM_BUCKETS];
	__u64 group[MAX_GROUPS]; /* received frames of each group of flows, if there are several groups */
	__u64 arrived[MAX_HEADER / 8]; /* the first bytes of the first test frame, as it arrived */
	__u32 tag; /* of this frame, if the kernel took it away: ethertype << 16 | tag; 0: none */
};

struct running { /* the trial that runs now */
	__u32 trial, groups;
	__u32 header;  /* the bytes before the payload, as they are sent */
	__u32 one_cpu; /* 1: all frames of a direction arrive on one CPU, so no other CPU uses its `arrivals` */
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

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100    /* IEEE 802.1Q */
#define ETHERTYPE_SERVICE 0x88a8 /* IEEE 802.1ad */
#define MAX_TAGS 3 /* the system under test may have added one */
#define MOST_HEADER (14 + 4 * MAX_TAGS + IPV6_HEADER + UDP_HEADER)
#define PROTOCOL_UDP 17
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define UDP_HEADER 8
#define FRAGMENT_OFFSET 0x1fff
#define MAX_GUESS 128 /* more than MAX_HEADER, and a power of two for the BPF verifier */

INLINE __u32 short_at(const void *address)
{
	return __builtin_bswap16(LOAD(__u16, address));
}

/*
 * The offset of the UDP payload of a frame, whatever the system under test added or took away: tags, another family of
 * addresses. 0 if the frame has none, and for all fragments but the first.
 */
SUBPROGRAM __u32 find_payload(const void *frame, const void *end)
{
	__u32 offset = 12;

	for (int tag = 0; tag <= MAX_TAGS; tag++) {
		const void *at = frame + offset;
		__u32 type;

		if (at + 2 + IPV4_HEADER > end)
			return 0;
		type = short_at(at);
		if (type == ETHERTYPE_IPV4) {
			if (LOAD(__u8, at + 2) != 0x45 || LOAD(__u8, at + 11) != PROTOCOL_UDP ||
			    short_at(at + 8) & FRAGMENT_OFFSET)
				return 0;
			return offset + 2 + IPV4_HEADER + UDP_HEADER;
		}
		if (type == ETHERTYPE_IPV6)
			return LOAD(__u8, at + 8) == PROTOCOL_UDP ? offset + 2 + IPV6_HEADER + UDP_HEADER : 0;
		if (type != ETHERTYPE_VLAN && type != ETHERTYPE_SERVICE)
			return 0;
		offset += 4;
	}
	return 0;
}

/* Keep the headers of the first test frame, so that the front can tell what the system under test made of them. */
SUBPROGRAM int keep_arrived(struct counters *counters, const void *frame, const void *end)
{
	for (int word = 0; word < MAX_HEADER / 8; word++) {
		if (frame + 8 * word + 8 > end)
			break;
		counters->arrived[word] = LOAD(__u64, frame + 8 * word);
	}
	return 0;
}

/* Read the head of a payload. Returns 1 if it is that of a frame of this trial and direction. */
INLINE int read_head(const void *payload, __u32 length, __u32 direction, __u16 trial, struct head *head, __u64 *check)
{
	head->identity = LOAD(__u64, payload);
	head->moment = LOAD(__u64, payload + 8);
	*check = check_word(*head, length);
	return head->identity >> 32 == (SIGNATURE | direction) && (__u16)head->moment == trial &&
	       LOAD(__u16, payload + 16) == check_short(*check);
}

/* Count a frame whose head is not that of a frame of this trial and direction. Returns 1 for a test frame. */
INLINE int account_odd(const void *payload, struct head head, __u32 length, __u32 direction, __u16 trial,
		       struct counters *counters)
{
	__u16 check = LOAD(__u16, payload + 16);
	int ours = (head.identity >> 32 & ~1ULL) == SIGNATURE, whole = check == check_short(check_word(head, length));

	if (!ours) {
		/* If only the signature is damaged, the frame still is a test frame. */
		head.identity = head_identity(direction, head.identity);
		ours = (__u16)head.moment == trial && check == check_short(check_word(head, length));
		whole = !ours; /* a frame of another sender is a stray */
	}
	if (ours && (__u16)head.moment == LEARNING)
		return 1;
	if (whole)
		counters->stray++;
	else
		counters->corrupted++;
	return ours;
}

/* Is what is left behind the last cell zero? Up to seven bytes of a payload without a cell are not looked at. */
INLINE int has_clean_end(const void *payload, const void *end, __u32 length)
{
	__u32 rest = (length - HEAD_BYTES) % CELL;
	const __u64 *last;

	if (!rest || length < HEAD_BYTES + 8)
		return 1;
	last = bytes_at(payload, end, length - 16, 16);
	if (!last)
		return 0;
	return rest <= 8 ? !(last[1] >> (64 - 8 * rest)) : !last[1] && !(last[0] >> (128 - 8 * rest));
}

/* Is the payload behind the head as it was sent? */
INLINE int has_whole_rest(const void *payload, const void *end, __u32 length, __u32 sequence, __u64 check)
{
	__u32 number = cells(length);

	if (number >= 1 && !marked(payload, end, cell_offset(number - 1), check))
		return 0;
	if (number >= 2 && !marked(payload, end, cell_offset(chosen_cell(sequence, number)), check))
		return 0;
	return has_clean_end(payload, end, length);
}

/*
 * Count one frame that arrived on the port where frames of `direction` leave the system under test. Returns 1 for a
 * test frame, and 0 for a frame of another sender. `sent_at` becomes the time of sending of a received frame whose
 * latency counts, and otherwise 0. The caller then reads the clock and calls account_latency().
 */
INLINE int account(const void *frame, const void *end, __u32 direction, const struct running *running,
		   struct counters *counters, struct arrivals *arrivals, __u64 *sent_at)
{
	__u32 trial = running->trial, groups = running->groups;
	struct head head;
	__u32 length, sequence;
	const void *payload;
	__u64 check, extended, key, *seen, before;
	__s32 step;

	*sent_at = 0;
	/*
	 * Most frames arrive with the header that was sent. This guess is quicker than a look at the header. The smallest
	 * header is a constant, so that the payload need not wait for a load.
	 */
	payload = frame + MIN_HEADER;
	if (running->header != MIN_HEADER)
		payload = frame + (running->header & (MAX_GUESS - 1));
	length = end - payload;
	if (payload + HEAD_BYTES > end || !read_head(payload, length, direction, trial, &head, &check)) {
		__u32 offset = find_payload(frame, end);

		__asm__ volatile("" : "+r"(offset)); /* for the BPF verifier */
		payload = frame + offset;
		if (!offset || offset > MOST_HEADER || payload + HEAD_BYTES > end) {
			counters->stray++;
			return 0;
		}
		length = short_at(payload - UDP_HEADER + 4) - UDP_HEADER; /* Ethernet pads short frames */
		if (!read_head(payload, length, direction, trial, &head, &check))
			return account_odd(payload, head, length, direction, trial, counters);
	}
	sequence = head.identity;
	if (length > HEAD_BYTES && (length > MAX_LENGTH || !has_whole_rest(payload, end, length, sequence, check))) {
		counters->corrupted++;
		return 1;
	}

	step = sequence - (__u32)arrivals->highest;
	extended = arrivals->highest + step;
	key = (__u64)trial << 48 ^ extended;
	seen = &arrivals->seen[extended & (SEEN_FRAMES - 1)];
	if (running->one_cpu) {
		before = *seen;
		*seen = key;
	} else {
		before = __sync_lock_test_and_set(seen, key); /* a twentieth of the work on a frame */
	}
	if (before == key) {
		counters->duplicated++;
		return 1;
	}
	if (step < 0)
		counters->reordered++;
	else
		arrivals->highest = extended;
	if (step > 1)
		arrivals->skipped = extended - 1;
	if (!counters->received++) /* of this trial, on this CPU */
		keep_arrived(counters, frame, end);
	if (groups > 1)
		counters->group[(extended - HIGHEST_AT_START - 1) % groups & (MAX_GROUPS - 1)]++;
	*sent_at = head.moment >> 16;
	return 1;
}

/* Count the latency of a frame that was sent and has arrived at these times, in ns. */
INLINE void account_latency(struct counters *counters, __u64 sent_at, __u64 now)
{
	__u64 latency = (now - sent_at) & TIME_MASK;
	__u32 index;

	if (latency >> 47) {
		counters->latency_negative++;
		return;
	}
	counters->latency_sum += latency;
	if (latency < counters->latency_min)
		counters->latency_min = latency;
	if (latency > counters->latency_max)
		counters->latency_max = latency;
	index = histogram_index(latency);
	if (index < HISTOGRAM_BUCKETS)
		counters->histogram[index]++;
}

#endif
