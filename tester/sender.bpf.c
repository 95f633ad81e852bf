// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sender. The front runs this program once for each trial, through BPF_PROG_TEST_RUN with live frames. The kernel
 * then calls it repeatedly. Each call sends one frame from the port where a frame is due, or no frame.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "accounting.h"
#include "marks.h"
#include "plan.h"

#define NOWHERE 0x7064aa5e /* no interface has this index */
#define LOOPBACK 1         /* the interface of live frames, for the kernel */
#define SIGALRM 14

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct plan);
} plan_map SEC(".maps");

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_BURSTS);
	__type(key, __u32);
	__type(value, struct stamp);
} stamps_map SEC(".maps");

INLINE void mark_window(void)
{
	__u64 unused;

	asm volatile("%0 = %1 ll" : "=r"(unused) : "i"(WINDOW_BEGINS));
}

/* A closed loop is one CPU's, and so are its counters. */
INLINE void note_burst(const struct plan *plan, __u64 now)
{
	__u64 frame = plan->stream[0].sent + plan->stream[1].sent - plan->warm_up; /* huge in the warm-up */
	__u32 burst = frame / plan->burst, entry = 2 * bpf_get_smp_processor_id(), other = entry + 1;
	struct stamp *stamp = bpf_map_lookup_elem(&stamps_map, &burst);
	const struct counters *one = bpf_map_lookup_elem(&counters_map, &entry);
	const struct counters *two = bpf_map_lookup_elem(&counters_map, &other);

	if (frame % plan->burst || !stamp || !one || !two)
		return;
	stamp->time = now;
	stamp->arrived = one->received + two->received;
	if (frame % WINDOW == 0)
		mark_window();
}

SEC("xdp")
int send_frames(struct xdp_md *ctx)
{
	__u32 zero = 0, length;
	struct plan *plan = bpf_map_lookup_elem(&plan_map, &zero);
	struct stream *stream;
	__u64 now;
	int direction;

	if (!plan)
		return XDP_DROP;
	if (!(plan->calls++ & plan->clock_mask))
		plan->now = bpf_ktime_get_ns();
	now = plan->now;
	direction = next_stream(plan, now);
	if (direction < 0)
		return plan_finished(plan) ? bpf_redirect(NOWHERE, 0) : XDP_DROP;
	direction &= 1;
	if (plan->burst)
		note_burst(plan, now);
	stream = &plan->stream[direction];
	length = next_length(plan, stream);
	if (length != plan->largest && bpf_xdp_adjust_tail(ctx, (int)length - (int)plan->largest)) {
		plan->failures++;
		return XDP_DROP;
	}
	if (write_frame(plan, stream, direction, (void *)(long)ctx->data, (void *)(long)ctx->data_end, length, now)) {
		plan->failures++;
		return XDP_DROP;
	}
	return bpf_redirect_map(&port_map, direction, 0);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct refusals);
} refusals_map SEC(".maps");

/*
 * Called when the kernel refuses to redirect a frame. The tracepoint's arguments: device, program, target, errno, map
 * type, map id, index. A finished sender redirects to an interface that does not exist, so that the kernel calls this
 * program. Only here a program can send the signal that ends the front's call, and it comes at the right moment.
 */
SEC("raw_tracepoint/xdp_redirect_err")
int count_refusals(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 port = ctx->args[6];
	struct refusals *refusals;

	if (port == NOWHERE) {
		bpf_send_signal(SIGALRM);
		return 0;
	}
	refusals = bpf_map_lookup_elem(&refusals_map, &port);
	if (refusals && refusals->map_id == (__u32)ctx->args[5]) {
		refusals->count++;
		refusals->error = -(int)ctx->args[3];
	}
	return 0;
}

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

INLINE void note_unsent(__u32 port, __u32 nic, int frames)
{
	struct refusals *refusals = bpf_map_lookup_elem(&refusals_map, &port);

	if (refusals && refusals->nic == nic)
		refusals->unsent += frames;
}

/*
 * Called when the kernel has given frames to a port. The tracepoint's arguments: device of origin, of destination,
 * frames sent, frames dropped, errno. A NIC with a full transmit ring takes only some frames, and only this tracepoint
 * tells.
 */
SEC("tp_btf/xdp_devmap_xmit")
int count_full_rings(__u64 *ctx)
{
	const struct net_device *from = (const void *)ctx[0], *to = (const void *)ctx[1];
	int dropped = ctx[3];

	if (dropped > 0 && from->ifindex == LOOPBACK) {
		note_unsent(0, to->ifindex, dropped);
		note_unsent(1, to->ifindex, dropped);
	}
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
