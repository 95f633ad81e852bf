// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Every frame that arrives leaves on one other interface, through its transmit path. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

struct { /* the interface's index; 0 while nobody has set it */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

SEC("tc")
int tc_redirect(struct __sk_buff *frame)
{
	__u32 zero = 0, *interface = bpf_map_lookup_elem(&target, &zero);

	return interface ? bpf_redirect(*interface, 0) : TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
