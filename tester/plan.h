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
#define MAX_FLOWS 1048576
#define MAX_FIELDS 8
#define MAX_CHECKSUMS 2
#define LATE_NS 1000000ULL
#define MOST_AT_ONCE_NS 100000 /* a burst after a stall has the frames of this time, or of 20 us */
#define MAX_BATCH 32
#define BATCH_NS 1000000ULL /* that the frames of a batch may take together, unless a single one takes longer */
#define CATCH_UP_SLACK_NS 2000ULL /* a call may be late by this without a lower rate of catching up */

/*
 * How the headers of a trial's frames change from frame to frame. A header itself is bytes. A field is a word of 16 bits
 * in network order. Its value is the frame's length less a number, or one of two values of the flow. A checksum is the
 * Internet checksum of a part of the header, with what stands outside of the header: a constant, and the payload.
 */
enum source { LENGTH, FIRST_VALUE, SECOND_VALUE };

struct field { /* of eight bytes, which the sender reads at once */
	__u8 offset, source, less;
	__u8 times[MAX_CHECKSUMS]; /* that it counts in each checksum */
	__u8 unused[3];
};

struct checksum {
	__u32 offset;
	__u32 payload; /* 1: it covers the payload */
};

struct layout {
	__u32 bytes; /* of the header: an even number */
	__u32 fields, checksums;
	__u32 flow_fields; /* the first ones: those with a value of the flow */
	__u32 payload; /* 1: a checksum covers the payload */
	struct field field[MAX_FIELDS];
	struct checksum checksum[MAX_CHECKSUMS];
};

struct pace {
	__u64 gap;        /* between frames, or between trains, with fraction */
	__u64 allowance;  /* ns; a frame that is late by at most this leaves at once */
	__u64 spacing;    /* ns between frames, or between trains, that are later than `allowance` */
	__u64 least;      /* ns; `spacing` if the frames that remain must hurry */
};

struct header { /* of the frames of one group of flows */
	__u64 words[MAX_HEADER / 8]; /* with zeros in the checksums. If all frames have one header: complete. */
	__u32 sum[MAX_CHECKSUMS];    /* of each checksum without payload and without the fields to write, not folded */
	__u32 written;               /* bits of the fields to write in each frame: the words have the others */
};

struct stream { /* one direction; `due` is FINISHED if all frames are sent, or none is to be sent */
	struct header header[MAX_GROUPS];
	struct pace pace, next_pace;
	__u64 due;        /* of the next frame, with fraction */
	__u64 count;      /* of frames to send */
	__u64 change;     /* the number of frames after which the next pace begins, or which is `count` */
	__u64 not_before; /* ns; the earliest time of the next frame while catching up */
	__u64 late_after; /* ns: later frames are counted as late */
	__u64 sent, late;
	__u64 hurried; /* ns: made up for at less than `spacing` */
	__u64 first, last; /* ns of the engine's clock: the times of frame 0 and of frame `timed` */
	__u64 timed;      /* the number of the last frame at which the clock was read */
	__u64 next_timed; /* in an unpaced trial: the number of the next such frame, or `count` */
	__u64 stamp;      /* in an unpaced trial: the time of sending in the frames until then, or 0 */
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

struct stamp {
	__u64 time, arrived;
};

struct plan {
	__u64 start; /* ns of the engine's clock; 0 until the first call */
	__u64 stop;  /* ns: nothing is sent after this */
	__u64 failures;
	__u32 flows;  /* a multiple of `groups`, so that each flow is in one group */
	__u32 groups;
	__u32 sizes;
	__u32 largest;
	__u32 trial;
	__u32 uniform;   /* 1: all frames of a direction have the same header, and it is no closed loop */
	__u32 calls_left; /* after the last frame: until then it has left, and the sender tells the front that it has ended */
	__u32 burst; /* frames in a burst of a closed loop; 0: frames go when they are due */
	__u32 warm_up; /* frames of a closed loop before the first burst that is noted */
	struct stream stream[2];
	__u16 length[MAX_SIZES]; /* of the frames in the order of sending, without FCS */
};

/* Frames that did not leave a port. The front sets the last three, because other programs may fail, too. */
struct refusals {
	__u64 count;  /* frames that the kernel did not give to the port: the tester's own loss */
	__u64 unsent; /* frames that did not fit into the NIC: not sent, and the achieved load is lower */
	__u32 error;  /* the last errno of `count` */
	__u32 map_id; /* of the map of ports */
	__u32 nic;    /* the port's interface; 0: a frame belongs to the system under test at once */
	__u32 joined; /* the port's interface, if the other port is plugged into it; otherwise 0 */
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

INLINE void finish(struct plan *plan)
{
	plan->stream[0].due = plan->stream[1].due = FINISHED;
}

/* The direction whose frame is due first. In an unpaced trial, due times only let the directions take turns. */
INLINE int next_direction(const struct plan *plan)
{
	return plan->stream[1].due < plan->stream[0].due;
}

/*
 * ns to the next frame or train, of a stream that is so late. The stream keeps `spacing`, which is hardly faster than its
 * load. If half of the frames that remain could not make up for the lateness at this rate, they hurry.
 */
INLINE __u64 catch_up(struct stream *stream, __u64 lateness)
{
	const struct pace *pace = &stream->pace;
	__u64 gap = pace->gap >> FRACTION_BITS, remaining = stream->change - stream->sent, less;

	if (!remaining)
		return pace->spacing;
	less = 2 * lateness * (stream->train + 1) / remaining;
	if (less <= gap - pace->spacing)
		return pace->spacing;
	if (less > gap - pace->least)
		less = gap - pace->least;
	stream->hurried += less;
	return gap - less;
}

/*
 * The direction of the frame that must leave now, or -1. After a stall there is no burst: frames that are late by at
 * most `allowance` leave at once, and later ones keep the distance of catch_up().
 */
INLINE int next_stream(struct plan *plan, __u64 now)
{
	__u64 elapsed, lateness;
	struct stream *stream;
	int direction;

	if (!plan->start)
		plan->start = now;
	elapsed = now - plan->start;
	direction = next_direction(plan);
	stream = &plan->stream[direction];
	if (elapsed << FRACTION_BITS < stream->due)
		return -1;
	if (elapsed >= plan->stop) {
		finish(plan);
		return -1;
	}
	lateness = elapsed - (stream->due >> FRACTION_BITS);
	if (lateness > stream->pace.allowance && !(stream->sent & stream->train)) { /* frames of a train stay together */
		if (elapsed < stream->not_before)
			return -1;
		if (elapsed - stream->not_before > CATCH_UP_SLACK_NS)
			stream->not_before = elapsed - CATCH_UP_SLACK_NS;
		stream->not_before += catch_up(stream, lateness);
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

/* Less than 2^36 becomes 16 bits. */
INLINE __u16 folded(__u64 sum)
{
	__u32 less = (__u32)(sum & 0xffff) + (__u32)(sum >> 16 & 0xffff) + (__u32)(sum >> 32);

	less = (less & 0xffff) + (less >> 16);
	return less + (less >> 16);
}

/* Write the fields with these bits into the header at `frame`, and add their values to the sums of the checksums. */
INLINE void write_fields(const volatile struct layout *layout, void *frame, __u32 written, __u32 values, __u32 length,
			 __u32 sums[MAX_CHECKSUMS])
{
	for (__u32 i = 0; i < MAX_FIELDS && written; i++, written >>= 1) {
		__u64 word = *(const volatile __u64 *)&layout->field[i];
		__u32 source = word >> 8 & 0xff;
		__u16 value;

		if (!(written & 1))
			continue;
		value = source == FIRST_VALUE ? values : source == SECOND_VALUE ? values >> 16 :
			network_short(length - (word >> 16 & 0xff));
		STORE(__u16, frame + (word & 0xff), value);
		sums[0] += value * (__u32)(word >> 24 & 0xff);
		sums[1] += value * (__u32)(word >> 32 & 0xff);
	}
}

/* Write the checksums: all of them, or with `payload` those alone that cover it. */
INLINE void write_checksums(const volatile struct layout *layout, void *frame, const __u32 sums[MAX_CHECKSUMS], __u64 head,
			    int payload)
{
	for (__u32 i = 0; i < MAX_CHECKSUMS; i++) {
		__u16 sum;

		if (i >= layout->checksums)
			break;
		if (payload && !layout->checksum[i].payload)
			continue;
		sum = ~folded(sums[i] + (layout->checksum[i].payload ? head : 0));
		/* A checksum of zero would mean that there is none (RFC 768). In IPv4's own, 0xffff is zero as well. */
		STORE(__u16, frame + layout->checksum[i].offset, sum ? sum : layout->checksum[i].payload ? 0xffff : 0);
	}
}

/*
 * Make what is left behind the last cell zero. In a buffer of longer frames this is a part of a cell, all of which becomes
 * zero: half of an old mark would change the checksum of the longer frames.
 */
INLINE void write_end(void *payload, void *end, __u32 length, int one_size)
{
	__u64 *word;

	if (!one_size && !write_cell(payload, end, cell_offset(cells(length)), 0, 0))
		return;
	if (length >= HEAD_BYTES + CELL)
		(void)write_cell(payload, end, length - CELL, 0, 0);
	else if (length >= HEAD_BYTES + 8 && (word = bytes_at(payload, end, length - 8, 8)))
		*word = 0;
}

/* Write the payload behind the head. `end` is that of the buffer, which may be longer than the frame. */
INLINE int write_rest(void *payload, void *end, __u32 length, __u32 sequence, __u64 check, int one_size)
{
	__u32 number = cells(length);

	write_end(payload, end, length, one_size);
	if (number >= 1 && write_cell(payload, end, cell_offset(number - 1), check, ~check))
		return -1;
	if (number >= 2 && write_cell(payload, end, cell_offset(chosen_cell(sequence, number)), check, ~check))
		return -1;
	return 0;
}

/*
 * Write the next frame of this stream. `values` are those of all flows: the first value in the low half, the second one
 * above, in network order. `length` is next_length(); `end` is that of the buffer. It writes every byte that
 * a receiver reads, because a reused buffer has the bytes that the system under test left there. `now` is 0 if the
 * frame's latency does not count. With `uniform`, the header's words are complete but for a checksum of the payload.
 * Returns 0, or -1 if the buffer is too small.
 */
INLINE int write_frame(const struct plan *plan, const volatile struct layout *layout, const __u32 *values,
		       const struct stream *stream, __u32 direction, void *frame, void *end, __u32 length, __u64 now, int uniform)
{
	const struct header *header = &stream->header[uniform ? 0 : stream->group & (MAX_GROUPS - 1)];
	__u32 bytes = layout->bytes, sequence = stream->sent;
	void *payload = frame + bytes;
	struct head head;
	__u64 check;

	if (length > MAX_LENGTH || payload + HEAD_BYTES > end)
		return -1;
	head.identity = head_identity(direction, sequence);
	head.moment = head_moment(plan->trial, !uniform && plan->burst ? 0 : now); /* in a closed loop, no latency counts */
	check = check_word(head, length - bytes);

	for (int word = 0; word < 6; word++) /* the payload's head, which follows, overwrites what is too much */
		STORE(__u64, frame + 8 * word, header->words[word]);
	for (__u32 word = 6; word < MAX_HEADER / 8 && 8 * word < bytes; word++)
		STORE(__u64, frame + 8 * word, header->words[word]);
	if (!uniform || layout->payload) {
		__u32 sums[MAX_CHECKSUMS] = { header->sum[0], header->sum[1] };

		if (!uniform)
			write_fields(layout, frame, header->written, values[stream->flow & (MAX_FLOWS - 1)], length, sums);
		write_checksums(layout, frame, sums, head_sum(head, check_short(check)), uniform);
	}
	STORE(__u64, payload, head.identity);
	STORE(__u64, payload + 8, head.moment);
	STORE(__u16, payload + 16, check_short(check));
	return length > bytes + HEAD_BYTES ?
		       write_rest(payload, end, length - bytes, sequence, check, plan->sizes == 1) : 0;
}

/* The next frame of this stream leaves now. */
INLINE void note_time(struct stream *stream, __u64 now)
{
	if (!stream->sent)
		stream->first = now;
	stream->last = now;
	stream->timed = stream->sent;
}

/*
 * An unpaced trial reads the clock at few frames, because each reading takes a quarter of the time that a frame takes.
 * The latency of one frame in eight counts: of RUN frames in a row, and then of none of the next 4 to 10 times RUN.
 * This distance varies, so that all flows, groups and sizes have their share. The frames of a run leave together,
 * because the frames that the kernel sends at once are a multiple of them.
 */
#define RUN 8

INLINE void begin_or_end_run(struct stream *stream, __u64 now)
{
	__u32 mixed = (__u32)stream->sent * 0x9e3779b1u >> 16;
	__u64 next, last = stream->count - 1;

	note_time(stream, now);
	stream->stamp = stream->stamp ? 0 : now;
	next = stream->sent + (stream->stamp ? RUN : RUN * (4 + mixed % 7));
	stream->next_timed = stream->sent >= last ? stream->count : next < last ? next : last;
}

/* Make `last` the time of the last frame, for which an unpaced trial may not have read the clock. */
INLINE void estimate_last(struct stream *stream)
{
	if (stream->timed)
		stream->last += (stream->last - stream->first) * (stream->sent - 1 - stream->timed) / stream->timed;
}

/* Account for a frame of this stream that leaves, and say when the next one is due. */
INLINE void frame_leaves(struct stream *stream)
{
	if (++stream->sent == stream->change) {
		if (stream->sent == stream->count) {
			stream->due = FINISHED;
			return;
		}
		stream->change = stream->count;
		stream->pace = stream->next_pace;
	}
	if (!(stream->sent & stream->train))
		stream->due += stream->pace.gap;
}

/* The flow, the group and the size of the next frame of this stream. */
INLINE void next_frame(const struct plan *plan, struct stream *stream)
{
	stream->flow = stream->flow + 1 < plan->flows ? stream->flow + 1 : 0;
	stream->group = stream->group + 1 < plan->groups ? stream->group + 1 : 0;
	stream->size = stream->size + 1 < plan->sizes ? stream->size + 1 : 0;
	if (plan->flows > 1 && !stream->flow && stream->size == stream->first_size) {
		stream->first_size = stream->first_size + 1 < plan->sizes ? stream->first_size + 1 : 0;
		stream->size = stream->first_size;
	}
}

#endif
