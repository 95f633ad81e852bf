/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The plan of one trial, and the two steps of sending: find out if a frame is due, and write it. The BPF program and
 * the packet-ring engine use this same code.
 *
 * Times are in nanoseconds since the first call of next_stream(), because sending can start only then. Due times have a
 * fraction of 16 bits, so that the mean rate is exact at any rate.
 */
#ifndef PODPERF_PLAN_H
#define PODPERF_PLAN_H

#include "payload.h"

#define FRACTION_BITS 16
#define FINISHED (~0ULL)
#define MAX_SIZES 64
#define MAX_FLOWS 65536
#define LATE_NS 1000000ULL
#define MAX_BATCH 32
#define BATCH_NS 1000000ULL /* that the frames of a batch may take together, unless a single one takes longer */
#define CATCH_UP_SLACK_NS 2000ULL /* a call may be late by this without a lower rate of catching up */

#define ADDRESS_SOURCE 28 /* the low halves of the addresses in a frame */
#define ADDRESS_DESTINATION 32
#define TOTAL_LENGTH 16
#define HEADER_CHECKSUM 24
#define UDP_LENGTH 38

struct pace {
	__u64 gap;        /* between frames, with fraction */
	__u64 allowance;  /* ns; a frame that is late by at most this leaves at once */
	__u64 spacing;    /* ns between frames that are later than `allowance` */
};

struct header { /* of the frames of one group of flows */
	__u64 words[6];    /* the header's 42 bytes, without flow and size */
	__u32 checksum;    /* of the IPv4 header without length and low halves of flow addresses, not folded */
	__u32 destination; /* 1: the destination address is the flow's; 0: it is fixed */
};

struct stream { /* one direction; `due` is FINISHED if all frames are sent, or none is to be sent */
	struct header header[MAX_GROUPS];
	struct pace pace, next_pace;
	__u64 change;     /* the number of frames after which the next pace begins; 0: never */
	__u64 due;        /* of the next frame, with fraction */
	__u64 count;      /* of frames to send */
	__u64 not_before; /* ns; the earliest time of the next frame while catching up */
	__u64 late_after; /* ns: later frames are counted as late */
	__u64 sent, first, last, late;
	__u32 flow;
	__u32 group;      /* of the next frame */
	__u32 size;
	__u32 train;      /* frames that are due together, less one: 0, 1, 3, 7 ... */
	__u32 first_size; /* the first size of the next round of flows; it changes so that no flow keeps one size */
};

/*
 * A closed loop sends a burst of so many frames when the previous burst has crossed the system under test. The sender
 * notes the beginning of each burst: the time, and the frames that had arrived by then.
 */
#define WINDOW 64 /* frames with one common time; so work that is done every 16 or 64 frames is in each window */
#define MAX_WINDOWS 64
#define MAX_BURSTS (WINDOW * MAX_WINDOWS + 1)

/* Frames of a closed loop come from the future. The sink counts no latency then, and works as long on each frame. */
#define NO_LATENCY (1ULL << 46) /* ns */

struct stamp {
	__u64 time, arrived;
};

struct plan {
	__u64 start; /* ns of the engine's clock; 0 until the first call */
	__u64 stop;  /* ns: nothing is sent after this */
	__u64 failures;
	__u64 now;        /* ns of the engine's clock, as read last */
	__u32 calls;      /* so far */
	__u32 clock_mask; /* the clock is read at calls whose number has none of these bits */
	__u32 flows;  /* a multiple of `groups`, so that each flow is in one group */
	__u32 groups;
	__u32 sizes;
	__u32 largest;
	__u32 trial;
	__u32 burst; /* frames in a burst of a closed loop; 0: frames go when they are due */
	__u32 warm_up; /* frames of a closed loop before the first burst that is noted */
	struct stream stream[2];
	__u16 length[MAX_SIZES]; /* of the frames in the order of sending, without FCS */
	__u16 host[MAX_FLOWS];   /* low half of each flow's addresses, network order */
};

/* Frames that did not leave a port. The front sets `map_id` and `nic`, because other programs may fail, too. */
struct refusals {
	__u64 count;  /* frames that the kernel did not give to the port: the tester's own loss */
	__u64 unsent; /* frames that did not fit into the NIC: not sent, and the achieved load is lower */
	__u32 error;  /* the last errno of `count` */
	__u32 map_id; /* of the map of ports */
	__u32 nic;    /* the port's interface; 0: a frame belongs to the system under test at once */
};

/*
 * The number of frames that a sender gives to the kernel at once, after so many took so long. They have the times of
 * their making, so on a slow path few frames are made beforehand.
 */
INLINE __u32 next_batch(__u64 took, __u32 frames)
{
	__u64 fitting = took ? BATCH_NS * frames / took : MAX_BATCH;

	return fitting < 1 ? 1 : fitting > MAX_BATCH ? MAX_BATCH : fitting;
}

INLINE int plan_finished(const volatile struct plan *plan)
{
	return plan->stream[0].due == FINISHED && plan->stream[1].due == FINISHED;
}

/*
 * The direction of the frame that must leave now, or -1. After a stall there is no burst: frames that are late by at
 * most `allowance` leave at once, and later ones keep `spacing`.
 */
INLINE int next_stream(struct plan *plan, __u64 now)
{
	__u64 elapsed, lateness;
	struct stream *stream;
	int direction;

	if (!plan->start)
		plan->start = now;
	elapsed = now - plan->start;
	direction = plan->stream[1].due < plan->stream[0].due;
	stream = &plan->stream[direction];
	if (elapsed << FRACTION_BITS < stream->due)
		return -1;
	if (elapsed >= plan->stop) {
		plan->stream[0].due = FINISHED;
		plan->stream[1].due = FINISHED;
		return -1;
	}
	lateness = elapsed - (stream->due >> FRACTION_BITS);
	if (lateness > stream->pace.allowance) {
		if (elapsed < stream->not_before)
			return -1;
		if (elapsed - stream->not_before > CATCH_UP_SLACK_NS)
			stream->not_before = elapsed - CATCH_UP_SLACK_NS;
		stream->not_before += stream->pace.spacing;
	}
	if (lateness > stream->late_after)
		stream->late++;
	return direction;
}

INLINE __u32 next_length(const struct plan *plan, const struct stream *stream)
{
	return plan->length[stream->size & (MAX_SIZES - 1)];
}

INLINE __u16 network_short(__u32 value)
{
	return __builtin_bswap16((__u16)value);
}

/*
 * Write the next frame of this stream and account for it. `length` is next_length(); `end` bounds the buffer. It writes
 * every byte that a receiver reads, because a reused buffer has the bytes that the system under test left there.
 * Returns 0, or -1 if the buffer is too small.
 */
INLINE int write_frame(struct plan *plan, struct stream *stream, __u32 direction, void *frame, void *end, __u32 length,
		       __u64 now)
{
	const struct header *header = &stream->header[stream->group & (MAX_GROUPS - 1)];
	struct head head;
	__u32 sequence = stream->sent;
	__u32 sum;
	__u16 host, total;
	__u64 check;
	void *word;

	if (length > MAX_LENGTH || frame + HEAD_END > end)
		return -1;
	for (int word = 0; word < 5; word++)
		STORE(__u64, frame + 8 * word, header->words[word]);
	STORE(__u16, frame + 40, (__u16)header->words[5]);

	host = plan->host[stream->flow & (MAX_FLOWS - 1)];
	total = network_short(length - 14);
	sum = header->checksum + host + total;
	STORE(__u16, frame + TOTAL_LENGTH, total);
	STORE(__u16, frame + UDP_LENGTH, network_short(length - 34));
	STORE(__u16, frame + ADDRESS_SOURCE, host);
	if (header->destination) {
		STORE(__u16, frame + ADDRESS_DESTINATION, host);
		sum += host;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	STORE(__u16, frame + HEADER_CHECKSUM, (__u16)~sum);

	head.identity = head_identity(direction, sequence);
	head.moment = head_moment(plan->trial, plan->burst ? now + NO_LATENCY : now);
	check = check_word(head, length);
	STORE(__u64, frame + HEADER_BYTES, head.identity);
	STORE(__u64, frame + HEADER_BYTES + 8, head.moment);
	STORE(__u16, frame + HEADER_BYTES + 16, check_short(check));
	if (has_trailer(length)) {
		word = word_at(frame, end, length - 8);
		if (!word)
			return -1;
		STORE(__u64, word, check);
	}
	if (has_middle(length)) {
		word = word_at(frame, end, middle_offset(sequence, length));
		if (!word)
			return -1;
		STORE(__u64, word, ~check);
	}

	if (!stream->sent)
		stream->first = now - plan->start;
	stream->last = now - plan->start;
	stream->sent++;
	if (stream->sent == stream->change)
		stream->pace = stream->next_pace;
	if (stream->sent >= stream->count)
		stream->due = FINISHED;
	else if (!(stream->sent & stream->train))
		stream->due += stream->pace.gap * (stream->train + 1);
	stream->flow = stream->flow + 1 < plan->flows ? stream->flow + 1 : 0;
	stream->group = stream->group + 1 < plan->groups ? stream->group + 1 : 0;
	stream->size = stream->size + 1 < plan->sizes ? stream->size + 1 : 0;
	if (plan->flows > 1 && !stream->flow && stream->size == stream->first_size) {
		stream->first_size = stream->first_size + 1 < plan->sizes ? stream->first_size + 1 : 0;
		stream->size = stream->first_size;
	}
	return 0;
}

#endif
