// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Every frame that arrives leaves on one other interface, before the kernel makes a socket buffer of it. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct { /* the interface; frames are handed to its driver in bulk */
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

SEC("xdp")
int xdp_redirect(struct xdp_md *frame)
{
	return bpf_redirect_map(&target, 0, XDP_DROP); /* dropped while nobody has set the interface */
}

char _license[] SEC("license") = "Dual BSD/GPL";
