// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sender. The front runs one of two programs once for each trial, through BPF_PROG_TEST_RUN with live frames. The
 * kernel then calls the program repeatedly. Each call sends one frame from the port where a frame is due, or no frame.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "accounting.h"
#include "marks.h"
#include "plan.h"

#define NOWHERE 0x7064aa5e /* no interface has this index */
#define LOOPBACK 1         /* the interface of live frames, for the kernel */
#define SIGALRM 14
#define ENOBUFS 105

/* The front maps each of these sections. */
struct plan the_plan SEC(".bss.plan");
const volatile struct layout layout; /* of the frames of this program: the front loads another one for other headers */
__u32 flow_values[MAX_FLOWS] SEC(".bss.values");
struct stamp stamps[MAX_BURSTS] SEC(".bss.stamps");
struct refusals refusals[2] SEC(".bss.refusals");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP); /* entries keep the device, so that the ports may be in different namespaces */
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} port_map SEC(".maps");

struct { /* the sink's own: the front makes this one the same */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct counters);
} counters_map SEC(".maps");

INLINE void mark(const __u64 what)
{
	__u64 unused;

	asm volatile("%0 = %1 ll" : "=r"(unused) : "i"(what));
}

/* A closed loop is one CPU's, and so are its counters. */
INLINE void note_burst(const struct plan *plan, __u64 now)
{
	__u64 frame = plan->stream[0].sent + plan->stream[1].sent - plan->warm_up; /* huge in the warm-up */
	__u32 burst = frame / plan->burst, entry = 2 * bpf_get_smp_processor_id(), other = entry + 1;
	const struct counters *one = bpf_map_lookup_elem(&counters_map, &entry);
	const struct counters *two = bpf_map_lookup_elem(&counters_map, &other);

	if (frame % plan->burst || burst >= MAX_BURSTS || !one || !two)
		return;
	stamps[burst].time = now;
	stamps[burst].arrived = one->received + two->received;
	mark(BURST_BEGINS);
	if (frame % WINDOW == 0)
		mark(WINDOW_BEGINS);
}

/*
 * Send nothing. After the last frame, tell the front once: a frame to an interface that does not exist makes the kernel
 * call count_refusals(). This takes microseconds, so the batch of the last frames must have left before.
 */
INLINE int send_nothing(struct plan *plan)
{
	if (!plan_finished(plan) || plan->calls_left--)
		return XDP_DROP;
	return bpf_redirect(NOWHERE, 0);
}

/* Write the next frame of the stream with this direction, and give it to its port. */
INLINE int send(struct xdp_md *ctx, struct plan *plan, int direction, __u64 now, int uniform)
{
	struct stream *stream = &plan->stream[direction];
	__u32 length = uniform ? plan->largest : next_length(plan, stream);

	if (write_frame(plan, &layout, flow_values, stream, direction, (void *)(long)ctx->data, (void *)(long)ctx->data_end,
			length, now, uniform) ||
	    (length != plan->largest && bpf_xdp_adjust_tail(ctx, (int)length - (int)plan->largest))) {
		plan->failures++;
		return XDP_DROP;
	}
	if (!uniform)
		next_frame(plan, stream);
	return bpf_redirect_map(&port_map, direction, 0);
}

/* For trials with a load, and for closed loops. */
SEC("xdp")
int send_frames(struct xdp_md *ctx)
{
	struct plan *plan = &the_plan;
	__u64 now = bpf_ktime_get_ns();
	int direction = next_stream(plan, now), action;

	if (direction < 0)
		return send_nothing(plan);
	direction &= 1;
	note_time(&plan->stream[direction], now);
	if (plan->burst)
		note_burst(plan, now);
	action = send(ctx, plan, direction, now, 0);
	frame_leaves(&plan->stream[direction]);
	return action;
}

/*
 * For unpaced trials: each call sends a frame. Whatever is not needed for each frame is done for the frames whose latency
 * counts.
 */
SEC("xdp")
int send_unpaced(struct xdp_md *ctx)
{
	struct plan *plan = &the_plan;
	int direction = next_direction(plan), action;
	struct stream *stream = &plan->stream[direction];

	if (stream->sent == stream->next_timed) {
		__u64 now = bpf_ktime_get_ns();

		if (!plan->start)
			plan->start = now;
		if (now - plan->start >= plan->stop)
			finish(plan);
		if (stream->sent == stream->count)
			stream->due = FINISHED;
		if (stream->due == FINISHED)
			return send_nothing(plan);
		begin_or_end_run(stream, now);
	}
	/* The first copy of this code is faster, because all headers are the same. */
	action = plan->uniform ? send(ctx, plan, direction, stream->stamp, 1) : send(ctx, plan, direction, stream->stamp, 0);
	stream->due = ++stream->sent;
	return action;
}

/*
 * Called when the kernel refuses to redirect a frame. The tracepoint's arguments: device, program, target, errno, map
 * type, map id, index. Only here a program can send the signal that ends the front's call of a finished sender.
 */
SEC("raw_tracepoint/xdp_redirect_err")
int count_refusals(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 port = ctx->args[6];

	if (port == NOWHERE) {
		bpf_send_signal(SIGALRM);
	} else if (port < 2 && refusals[port].map_id == (__u32)ctx->args[5]) {
		refusals[port].count++;
		refusals[port].error = -(int)ctx->args[3];
	}
	return 0;
}

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

/*
 * Called when the kernel has given frames to a port. The tracepoint's arguments: device of origin, of destination,
 * frames sent, frames dropped, errno. A NIC with a full transmit ring takes only some frames, and a veth only those that
 * fit into its peer's receive ring. Only this tracepoint tells.
 */
SEC("tp_btf/xdp_devmap_xmit")
int count_full_rings(__u64 *ctx)
{
	const struct net_device *from = (const void *)ctx[0], *to = (const void *)ctx[1];
	int dropped = ctx[3];

	if (dropped <= 0 || from->ifindex != LOOPBACK)
		return 0;
	for (int port = 0; port < 2; port++)
		if (refusals[port].nic == (__u32)to->ifindex)
			refusals[port].unsent += dropped;
	for (int port = 0; port < 2; port++) {
		if (refusals[port].joined == (__u32)to->ifindex) {
			refusals[port].count += dropped;
			refusals[port].error = ENOBUFS;
			break; /* in two namespaces, both ports may have the same number */
		}
	}
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
