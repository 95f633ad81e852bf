/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The content of a test frame. The BPF programs and the front share this file. No state, no I/O.
 *
 * A frame is Ethernet (14), IPv4 (20), UDP (8) and a payload. The payload starts with a head of 18 bytes, in little
 * endian. The head fills a frame of 64 bytes (60 without its FCS):
 *
 *     0  sequence number       32 bit
 *     4  signature             31 bit, direction in the lowest bit
 *     8  trial                 16 bit
 *    10  time of sending, ns   48 bit
 *    16  check                 16 bit, over the above and the frame's length
 *
 * Larger frames have two more words of 64 bit, computed from the head: one at the end, and one at a place that the
 * sequence number chooses. So some frames together show a fault anywhere in the payload, and the cost does not grow
 * with the frame. This code does not read addresses and the TTL, because a system under test may change them.
 */
#ifndef PODPERF_PAYLOAD_H
#define PODPERF_PAYLOAD_H

#include <linux/types.h>

#define HEADER_BYTES 42
#define HEAD_END 60 /* header and head: the smallest frame without its FCS */
#define FCS_BYTES 4
#define MIN_FRAME_BYTES 64
#define MAX_FRAME_BYTES 3000
#define MAX_LENGTH (MAX_FRAME_BYTES - FCS_BYTES) /* a length is a frame's size in memory: without the FCS */

/*
 * Flows may be in groups, each with a destination of its own. The frame with number N, counted from 0, is of group N
 * modulo the number of groups. So the receiver needs no further bytes to tell the group of a frame.
 */
#define MAX_GROUPS 16

#define SIGNATURE 0x7064aa5eu /* even: the lowest bit is the direction */
#define TIME_MASK ((1ULL << 48) - 1)

#define INLINE static inline __attribute__((always_inline))
#define LOAD(type, address) (*(const type *)(address))
#define STORE(type, address, value) (*(type *)(address) = (value))

struct head {
	__u64 identity; /* sequence number, signature, direction */
	__u64 moment;   /* trial, time of sending */
};

INLINE __u64 head_identity(__u32 direction, __u32 sequence)
{
	return (__u64)(SIGNATURE | direction) << 32 | sequence;
}

INLINE __u64 head_moment(__u16 trial, __u64 now)
{
	return now << 16 | trial;
}

/* The check word of a frame: every bit of the head and of the length changes about half of it. */
INLINE __u64 check_word(struct head head, __u32 length)
{
	__u64 mixed = (head.identity ^ length) * 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 32 ^ head.moment) * 0xd6e8feb86659fd93ULL;
	return mixed ^ mixed >> 32;
}

INLINE __u16 check_short(__u64 check)
{
	return check >> 48;
}

/* The offset of the word in the middle of a frame of this length. Only valid if has_middle(length). */
INLINE __u32 middle_offset(__u32 sequence, __u32 length)
{
	__u64 places = (length - HEAD_END - 8) / 8;

	return HEAD_END + 8 * (__u32)((__u64)(sequence * 2654435761u) * places >> 32);
}

INLINE int has_trailer(__u32 length)
{
	return length >= HEAD_END + 8;
}

INLINE int has_middle(__u32 length)
{
	return length >= HEAD_END + 16;
}

/* The word at this offset of a frame, or null if the frame ends before. The BPF verifier needs the barrier. */
INLINE void *word_at(const void *frame, const void *end, __u64 offset)
{
	void *word;

	__asm__ volatile("" : "+r"(offset));
	if (offset > MAX_LENGTH)
		return 0;
	word = (void *)frame + offset;
	return word + 8 <= end ? word : 0;
}

/*
 * The HdrHistogram counts index of a value, for lowest discernible value 1 and two significant digits (256 sub-buckets
 * in the first bucket, 128 in the others). Values of 2^37 ns (137 s) and more share the last index.
 */
#define LATENCY_BITS 37
#define HISTOGRAM_BUCKETS (128 * (LATENCY_BITS - 8) + 256)

INLINE __u32 histogram_index(__u64 value)
{
	__u32 exponent = 0;

	if (value >> LATENCY_BITS)
		value = (1ULL << LATENCY_BITS) - 1;
	if (value >> 24) { exponent = 16; }
	if (value >> (exponent + 16)) { exponent += 8; }
	if (value >> (exponent + 12)) { exponent += 4; }
	if (value >> (exponent + 10)) { exponent += 2; }
	if (value >> (exponent + 9)) { exponent += 1; }
	if (value >> (exponent + 8)) { exponent += 1; }
	return 128 * exponent + (__u32)(value >> exponent);
}

#endif
