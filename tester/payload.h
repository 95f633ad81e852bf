/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The payload of a test frame. The BPF programs and the front share this file. No state, no I/O.
 *
 * Headers go before it, which the request gives as bytes: see plan.h. The payload starts with a head of 18 bytes, in
 * little endian:
 *
 *     0  sequence number       32 bit
 *     4  signature             31 bit, direction in the lowest bit
 *     8  trial                 16 bit
 *    10  time of sending, ns   48 bit; 0: the latency of this frame does not count
 *    16  check                 16 bit, over the above and the payload's length
 *
 * The rest of a longer payload is cells of 16 bytes. Two cells have a mark, computed from the head: the last one, and one
 * that the sequence number chooses. So some frames together show a fault anywhere in the payload, and the cost does not
 * grow with the frame. What is left behind the last cell is zero.
 *
 * A mark is a word of 64 bits and its complement, so that the Internet checksum (RFC 1071) of a mark is zero. A reused
 * buffer has marks of earlier frames in other cells. They do not change the checksum of the payload: it is the head's.
 */
#ifndef PODPERF_PAYLOAD_H
#define PODPERF_PAYLOAD_H

#include <linux/types.h>

#define HEAD_BYTES 18
#define CELL 16
#define MAX_HEADER 80       /* bytes before the payload */
#define MIN_HEADER 42       /* Ethernet, IPv4, UDP */
#define FCS_BYTES 4
#define MIN_FRAME_BYTES 64
#define MAX_FRAME_BYTES 9022
#define MAX_LENGTH (MAX_FRAME_BYTES - FCS_BYTES) /* a length is a frame's size in memory: without the FCS */

/*
 * Flows may be in groups, each with a destination of its own. The frame with number N, counted from 0, is of group N
 * modulo the number of groups. So the receiver needs no further bytes to tell the group of a frame.
 */
#define MAX_GROUPS 16

#define LEARNING 0 /* the trial number of frames that only teach switches; no trial has it */
#define SIGNATURE 0x7064aa5eu /* even: the lowest bit is the direction */
#define TIME_MASK ((1ULL << 48) - 1)

#define INLINE static inline __attribute__((always_inline))
#define SUBPROGRAM static __attribute__((noinline, unused)) /* for rare cases: the common path stays short */
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

/* The check word of a payload: every bit of the head and of the length changes about half of it. */
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

INLINE __u32 cells(__u32 length)
{
	return (length - HEAD_BYTES) / CELL;
}

/* The offset of a cell in the payload. */
INLINE __u32 cell_offset(__u32 cell)
{
	return HEAD_BYTES + CELL * cell;
}

/* The cell before the last one that has a mark. Only valid with two cells or more. */
INLINE __u32 chosen_cell(__u32 sequence, __u32 cells)
{
	return (__u64)(sequence * 2654435761u) * (cells - 1) >> 32;
}

/* So many bytes at this offset of a payload, or null if the memory ends before. The BPF verifier needs the barrier. */
INLINE void *bytes_at(const void *payload, const void *end, __u64 offset, __u32 size)
{
	__asm__ volatile("" : "+r"(offset));
	if (offset > MAX_LENGTH || payload + offset + size > end)
		return 0;
	return (void *)payload + offset;
}

/* Write the two words of a cell. Returns 0, or -1 if the memory ends before. */
INLINE int write_cell(void *payload, void *end, __u32 offset, __u64 one, __u64 two)
{
	void *cell = bytes_at(payload, end, offset, CELL);

	if (!cell)
		return -1;
	STORE(__u64, cell, one);
	STORE(__u64, cell + 8, two);
	return 0;
}

/* Does this cell have the mark of a frame with this check word? */
INLINE int marked(const void *payload, const void *end, __u32 offset, __u64 check)
{
	const __u64 *cell = bytes_at(payload, end, offset, CELL);

	return cell && cell[0] == check && cell[1] == ~check;
}

/* The Internet checksum's sum of a head, not folded: sums of 32-bit words fold to the same as those of 16-bit words. */
INLINE __u64 head_sum(struct head head, __u16 check)
{
	return (__u64)(__u32)head.identity + (head.identity >> 32) + (__u32)head.moment + (head.moment >> 32) + check;
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
