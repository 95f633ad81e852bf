// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The sink: one program for each port. It counts test frames and drops them. All other frames go on to the host. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "accounting.h"

struct { /* entry 2 * CPU + direction; the front sets the number of entries */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct counters);
} counters_map SEC(".maps");

/* The front maps each of these sections. */
struct arrivals all_arrivals[2] SEC(".bss.arrivals");
struct running running SEC(".bss.running");

INLINE int sink(struct xdp_md *ctx, __u32 direction)
{
	__u32 entry = 2 * bpf_get_smp_processor_id() + direction;
	struct counters *counters = bpf_map_lookup_elem(&counters_map, &entry);
	__u64 sent_at;

	if (!counters)
		return XDP_PASS;
	if (!account((void *)(long)ctx->data, (void *)(long)ctx->data_end, direction, &running, counters,
		     &all_arrivals[direction], &sent_at))
		return XDP_PASS;
	if (sent_at)
		account_latency(counters, sent_at, bpf_ktime_get_ns());
	return XDP_DROP;
}

SEC("xdp")
int sink_right(struct xdp_md *ctx)
{
	return sink(ctx, 0);
}

SEC("xdp")
int sink_left(struct xdp_md *ctx)
{
	return sink(ctx, 1);
}

char _license[] SEC("license") = "Dual BSD/GPL";
