// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every frame that arrives is received at once by the far end of a veth pair, in the namespace of the pod there: neither
 * the pair nor the queue of the CPU's backlog is crossed (Linux 5.10).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

struct { /* the index of the near end; 0 while nobody has set it */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

SEC("tc")
int tc_peer(struct __sk_buff *frame)
{
	__u32 zero = 0, *interface = bpf_map_lookup_elem(&target, &zero);

	return interface ? bpf_redirect_peer(*interface, 0) : TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
