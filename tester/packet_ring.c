// SPDX-License-Identifier: Apache-2.0
/*
 * The engine without BPF: packet sockets, in one thread. It sends by sendmmsg without a queueing discipline, and
 * receives by a TPACKET_V3 ring. It empties the ring when no frame is due. The frames in the ring have the kernel's
 * time of arrival, so latencies do not depend on the time of reading.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tester.h"

#define BLOCK_BYTES (1 << 16)
#define BLOCKS 256 /* the kernel begins one each millisecond, if a frame comes: so many ms may pass without reading */
#define BLOCKS_OF_A_BATCH (MAX_BATCH * MAX_LENGTH / BLOCK_BYTES + 2)
#define BLOCK_TIMEOUT_MS 1
#define SEND_BUFFER_BYTES (256 << 20) /* large, because frames in the SUT still count as unsent */
#define LONGEST_PAUSE_MS 1

struct ring_port {
	struct port *port;
	int sender, receiver;
	unsigned char *ring;
	unsigned int block; /* the next one to read */
	struct mmsghdr messages[MAX_BATCH];
	struct iovec vectors[MAX_BATCH];
	unsigned char frames[MAX_BATCH][MAX_LENGTH];
	unsigned int filled, batch; /* frames that wait here, and so many leave at once */
	uint64_t unsent; /* frames that did not fit into the NIC's ring */
	int tso_was_on;
};

static struct ring_port sides[2];
static struct plan plan;
static uint32_t flow_values[MAX_FLOWS];
static struct counters counters[2]; /* by direction */
static struct arrivals arrivals[2];
#define NO_DIRECTION (-1)
static int sent_only = NO_DIRECTION; /* the direction whose frames another process counts */
static int comes_back; /* 1: frames arrive at the port that sent them */

static int failed(const struct port *port, const char *what)
{
	if (errno == EPERM)
		return complain(BROKEN, "port %s: %s is not permitted: it needs root, or CAP_NET_RAW and CAP_NET_ADMIN",
				port->name, what);
	return complain(BROKEN, "port %s: %s on %s: %s", port->name, what, port->interface, strerror(errno));
}

static int bind_to(int fd, const struct port *port, int protocol)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol),
				       .sll_ifindex = (int)port->ifindex };

	return bind(fd, (struct sockaddr *)&address, sizeof(address));
}

/* Without CAP_NET_ADMIN, as in most pods, the kernel's own limit bounds the buffer. */
static int send_buffer(int socket, int bytes)
{
	if (!setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		return 0;
	return errno == EPERM ? setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) : -1;
}

static int open_sender(struct ring_port *side)
{
	int one = 1, bytes = SEND_BUFFER_BYTES;

	side->sender = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (side->sender < 0)
		return failed(side->port, "opening a packet socket");
	if (setsockopt(side->sender, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) || send_buffer(side->sender, bytes) ||
	    bind_to(side->sender, side->port, 0))
		return failed(side->port, "preparing the sending socket");
	for (int i = 0; i < MAX_BATCH; i++) {
		side->vectors[i].iov_base = side->frames[i];
		side->messages[i].msg_hdr.msg_iov = &side->vectors[i];
		side->messages[i].msg_hdr.msg_iovlen = 1;
	}
	return 0;
}

static int open_receiver(struct ring_port *side)
{
	struct tpacket_req3 ring = { .tp_block_size = BLOCK_BYTES, .tp_block_nr = BLOCKS, .tp_frame_size = 4096,
				     .tp_frame_nr = BLOCK_BYTES / 4096 * BLOCKS, .tp_retire_blk_tov = BLOCK_TIMEOUT_MS };
	int one = 1, version = TPACKET_V3;

	side->receiver = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (side->receiver < 0)
		return failed(side->port, "opening a packet socket");
	if (setsockopt(side->receiver, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(side->receiver, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(side->receiver, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
		return failed(side->port, "making the receive ring");
	side->ring = mmap(NULL, (size_t)BLOCK_BYTES * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, side->receiver, 0);
	if (side->ring == MAP_FAILED)
		return failed(side->port, "mapping the receive ring");
	return bind_to(side->receiver, side->port, ETH_P_ALL) ? failed(side->port, "binding the receive ring") : 0;
}

/*
 * If TCP segmentation offload of a veth is on, frames from sockets do not enter the peer's NAPI context. The sender
 * would then do the work of the system under test, and would be slower.
 */
static int hand_work_to_peer(struct ring_port *side)
{
	side->tso_was_on = port_is_veth(side->port) && port_tso(side->port);
	if (!side->tso_was_on || !port_set_tso(side->port, 0))
		return 0;
	side->tso_was_on = 0;
	if (errno != EPERM)
		return -1;
	side->port->mode = "packet-ring, in the sender's context"; /* a pod may not change its interface */
	return 0;
}

static void packet_ring_close(void)
{
	for (int i = 0; i < 2; i++)
		if (sides[i].tso_was_on)
			port_set_tso(sides[i].port, 1);
}

static int packet_ring_open(struct port ports[2])
{
	for (int i = 0; i < 2; i++) {
		int bad;

		sides[i].port = &ports[i];
		if (ports[i].absent)
			continue;
		ports[i].mode = "packet-ring";
		if (port_enter(&ports[i]))
			return -1;
		bad = open_sender(&sides[i]) || open_receiver(&sides[i]) || hand_work_to_peer(&sides[i]);
		if (port_leave(&ports[i]) || bad)
			return -1;
	}
	return 0;
}

static struct plan *packet_ring_plan(const struct request *request, uint32_t **values)
{
	*values = flow_values;
	return &plan;
}

static void account_block(struct tpacket_block_desc *block, int port, int direction)
{
	const struct running running = { plan.trial, plan.groups, MIN_HEADER, 1 };
	unsigned char *at = (unsigned char *)block + block->hdr.bh1.offset_to_first_pkt;

	for (unsigned int i = 0; i < block->hdr.bh1.num_pkts; i++) {
		struct tpacket3_hdr *header = (struct tpacket3_hdr *)at;
		unsigned char *frame = at + header->tp_mac;
		__u32 tag = 0;
		__u64 sent_at;

		if (header->tp_status & TP_STATUS_VLAN_VALID)
			tag = (header->tp_status & TP_STATUS_VLAN_TPID_VALID ? header->hv1.tp_vlan_tpid : ETHERTYPE_VLAN) << 16 |
			      header->hv1.tp_vlan_tci;
		if (!account(frame, frame + header->tp_snaplen, direction, &running, &counters[direction],
			     &arrivals[direction], &sent_at))
			neighbours_take(port, frame, header->tp_snaplen, tag);
		else if (counters[direction].received == 1)
			counters[direction].tag = tag;
		if (sent_at)
			account_latency(&counters[direction], sent_at, header->tp_sec * 1000000000ULL + header->tp_nsec);
		at += header->tp_next_offset;
	}
}

/* Empty a block of a ring, if the kernel has handed one over. Returns 1 then. */
static int receive_block(int port)
{
	struct ring_port *side = &sides[port];
	struct tpacket_block_desc *block = (void *)(side->ring + (size_t)side->block * BLOCK_BYTES);

	if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return 0;
	/* a frame that arrives on the right goes left to right: direction 0 */
	account_block(block, port, comes_back ? port : !port);
	__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	side->block = (side->block + 1) % BLOCKS;
	return 1;
}

/* Empty the blocks of each ring that the kernel has handed over, but not more than a batch of frames fills. */
static void receive(void)
{
	for (int i = 0; i < 2; i++)
		for (int j = 0; !sides[i].port->absent && j < BLOCKS_OF_A_BATCH && receive_block(i); j++)
			;
}

static uint64_t arrived(int direction)
{
	for (int i = 0; i < BLOCKS; i++)
		receive();
	if (sent_only == direction)
		return plan.stream[direction].sent; /* the other process counts these */
	return counters[direction].received + counters[direction].corrupted;
}

/* Send the filled frames. A frame that does not fit into the system under test counts as sent, as on a NIC. */
static int send_out(struct ring_port *side)
{
	unsigned int done = 0;
	uint64_t began;

	if (!side->filled)
		return 0;
	began = clock_ns(CLOCK_MONOTONIC);
	while (done < side->filled && !stopping) {
		int count = sendmmsg(side->sender, side->messages + done, side->filled - done, 0);

		if (count > 0) {
			done += count;
		} else if (errno == ENOBUFS) {
			if (port_is_nic(side->port))
				side->unsent++;
			done++;
		} else if (errno != EINTR && errno != EAGAIN) {
			return failed(side->port, "sending");
		}
	}
	side->batch = next_batch(clock_ns(CLOCK_MONOTONIC) - began, side->filled);
	side->filled = 0;
	return 0;
}

/*
 * Whether the sender sleeps until the next frame. With trains, its CPU time is then that of its frames. In an exchange,
 * two processes send: if both polled, two CPUs would have no time for other programs, and the kernel would take it from
 * those that never sleep. A sender that is late polls, as each sleep ends some microseconds too late.
 */
static int sleeps(const struct request *request, uint64_t now)
{
	if (request->train > 1)
		return request->part == SEND || request->part == EXCHANGE;
	return request->part == EXCHANGE && plan.stream[next_direction(&plan)].due >> FRACTION_BITS > now - plan.start;
}

/* Sleep until the next frame or train is due. The timer's slack is off: a late train would push the next ones together. */
static void sleep_until_due(void)
{
	const struct stream *stream = &plan.stream[next_direction(&plan)];
	uint64_t due = stream->due >> FRACTION_BITS;
	uint64_t leaves = plan.start + (due > stream->not_before ? due : stream->not_before);
	const struct timespec until = { .tv_sec = leaves / 1000000000, .tv_nsec = leaves % 1000000000 };

	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

static int send_all(const struct request *request)
{
	prctl(PR_SET_TIMERSLACK, request->train > 1 || request->part == EXCHANGE ? 1 : 0);
	while (!plan_finished(&plan) && !stopping) {
		uint64_t now = clock_ns(CLOCK_REALTIME);
		int direction = next_stream(&plan, now);
		struct ring_port *side = &sides[direction & 1];
		struct stream *stream = &plan.stream[direction & 1];
		uint32_t length;

		if (direction < 0) {
			if (send_out(&sides[LEFT]) || send_out(&sides[RIGHT]))
				return -1;
			receive();
			if (!plan_finished(&plan) && sleeps(request, now))
				sleep_until_due();
			continue;
		}
		length = next_length(&plan, stream);
		side->vectors[side->filled].iov_len = length;
		if (write_frame(&plan, &request->layout, flow_values, stream, direction, side->frames[side->filled],
				side->frames[side->filled] + MAX_LENGTH, length, now, plan.uniform))
			return complain(BROKEN, "the sender could not build a frame of %u bytes", length);
		note_time(stream, now);
		next_frame(&plan, stream);
		frame_leaves(stream);
		if (++side->filled >= side->batch) {
			if (send_out(&sides[LEFT]) || send_out(&sides[RIGHT]))
				return -1;
			receive();
		}
	}
	return send_out(&sides[LEFT]) || send_out(&sides[RIGHT]);
}

static void packet_ring_listen(int milliseconds)
{
	struct pollfd awaited[3] = { { .fd = STDIN_FILENO, .events = POLLIN } };

	for (int i = 0; i < 2; i++)
		awaited[1 + i] = (struct pollfd){ .fd = sides[i].port->absent ? -1 : sides[i].receiver, .events = POLLIN };
	receive();
	poll(awaited, 3, milliseconds);
	receive();
}

static void tell_counting(const struct request *request)
{
	printf("{\"counting\":%u}\n", request->trial);
	fflush(stdout);
}

static void begin_to_count(const struct request *request)
{
	plan.stream[0].due = plan.stream[1].due = FINISHED;
	tell_counting(request);
}

/* Read the line `sent=N` of each direction. */
static int read_sent(const struct request *request)
{
	char line[64];

	for (int direction = 0; direction < 2 && !stopping; direction++) {
		if (!request->directions[direction])
			continue;
		if (!fgets(line, sizeof(line), stdin) || sscanf(line, "sent=%llu", &plan.stream[direction].sent) != 1)
			return complain(BAD_REQUEST, "request: the number of sent frames must follow, as sent=N");
	}
	return 0;
}

/* Count what arrives until a line is there. */
static void count_until_line(void)
{
	struct pollfd said = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!stopping && poll(&said, 1, 0) <= 0)
		packet_ring_listen(LONGEST_PAUSE_MS);
}

/* Count what arrives until the line `sent=N` says that another process has sent all frames, which are so many. */
static int count_until_sent(const struct request *request)
{
	begin_to_count(request);
	count_until_line();
	return read_sent(request);
}

/* A ring of frames, which gives each frame at once. A block of the other rings may take a millisecond. */
static struct quick_ring {
	int fd;
	unsigned char *frames;
	unsigned int size, next; /* bytes of each frame; the next frame to read */
} quick;

static int open_quick_ring(const struct ring_port *side, unsigned int largest)
{
	unsigned int size = 2048;
	int one = 1, version = TPACKET_V2;

	while (size < largest + TPACKET2_HDRLEN + TPACKET_ALIGNMENT)
		size *= 2;
	struct tpacket_req request = { .tp_block_size = BLOCK_BYTES, .tp_block_nr = BLOCKS, .tp_frame_size = size,
				       .tp_frame_nr = BLOCK_BYTES / size * BLOCKS };

	quick = (struct quick_ring){ .fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), .size = size };
	if (quick.fd < 0)
		return failed(side->port, "opening a packet socket");
	if (setsockopt(quick.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(quick.fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(quick.fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		return failed(side->port, "making a ring of frames");
	quick.frames = mmap(NULL, (size_t)BLOCK_BYTES * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, quick.fd, 0);
	if (quick.frames == MAP_FAILED)
		return failed(side->port, "mapping a ring of frames");
	return bind_to(quick.fd, side->port, ETH_P_ALL) ? failed(side->port, "binding a ring of frames") : 0;
}

static void close_quick_ring(void)
{
	if (quick.frames && quick.frames != MAP_FAILED)
		munmap(quick.frames, (size_t)BLOCK_BYTES * BLOCKS);
	close(quick.fd);
}

static void swap(unsigned char *one, unsigned char *other, int bytes)
{
	unsigned char kept[16];

	memcpy(kept, one, bytes);
	memcpy(one, other, bytes);
	memcpy(other, kept, bytes);
}

/* Let a test frame be sent so many ns later, as if it had not waited here. Its marks and its checksum follow. */
static void send_later(unsigned char *frame, unsigned char *end, uint64_t waited)
{
	unsigned char *payload = frame + find_payload(frame, end);
	uint32_t length = short_at(payload - UDP_HEADER + 4) - UDP_HEADER;
	struct head sent = { LOAD(__u64, payload), LOAD(__u64, payload + 8) }, later = sent;
	uint16_t checksum = LOAD(__u16, payload - 2), before = folded(head_sum(sent, LOAD(__u16, payload + 16)));
	uint64_t check;

	if (!(sent.moment >> 16)) /* the latency of this frame does not count */
		return;
	later.moment = head_moment(sent.moment, (sent.moment >> 16) + waited);
	check = check_word(later, length);
	STORE(__u64, payload + 8, later.moment);
	STORE(__u16, payload + 16, check_short(check));
	write_rest(payload, end, length, later.identity, check, 1);
	if (checksum) { /* RFC 1624; zero would mean that there is none */
		checksum = ~folded((uint64_t)(uint16_t)~checksum + (uint16_t)~before + head_sum(later, check_short(check)));
		STORE(__u16, payload - 2, checksum ? checksum : 0xffff);
	}
}

/* Send a frame back to the sender of its packet. No checksum changes with the order of the addresses. */
static void return_frame(const struct ring_port *side, unsigned char *frame, int length)
{
	unsigned char *packet = frame + sizeof(struct ethhdr);

	swap(frame, frame + 6, 6);
	if (*packet >> 4 == 4)
		swap(packet + 12, packet + 16, 4);
	else
		swap(packet + 8, packet + 24, 16);
	send(side->sender, frame, length, 0); /* a frame that finds no place is lost, as on a NIC */
}

/* Return the frames that have arrived. Their time here does not count: it is the latency that this end tells. */
static void return_arrived(const struct ring_port *side, int direction)
{
	const struct running running = { plan.trial, plan.groups, MIN_HEADER, 1 };
	struct counters *counted = &counters[direction];

	for (;; quick.next = (quick.next + 1) % (BLOCK_BYTES / quick.size * BLOCKS)) {
		struct tpacket2_hdr *header = (void *)(quick.frames + (size_t)quick.next * quick.size);
		unsigned char *frame, *end;
		uint64_t received = counted->received, arrived_at, now;
		__u64 sent_at;

		if (!(__atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return;
		frame = (unsigned char *)header + header->tp_mac;
		end = frame + header->tp_snaplen;
		account(frame, end, direction, &running, counted, &arrivals[direction], &sent_at);
		if (counted->received > received) { /* no other sender's frame, and no damaged one */
			arrived_at = header->tp_sec * 1000000000ULL + header->tp_nsec;
			now = clock_ns(CLOCK_REALTIME);
			if (arrived_at < now) {
				account_latency(counted, arrived_at, now);
				send_later(frame, end, now - arrived_at);
			}
			return_frame(side, frame, end - frame);
		}
		__atomic_store_n(&header->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	}
}

/* The number of frames that did not fit into a ring since the last call. */
static uint64_t drops_of(int ring)
{
	struct tpacket_stats_v3 statistics = { 0 };
	socklen_t length = sizeof(statistics);

	getsockopt(ring, SOL_PACKET, PACKET_STATISTICS, &statistics, &length);
	return statistics.tp_drops;
}

/* As count_until_sent(), and each frame goes back. The port's own ring fills meanwhile, and nobody reads it. */
static int return_until_sent(const struct request *request, uint64_t *drops)
{
	int port = sides[LEFT].port->absent ? RIGHT : LEFT, direction = request->directions[0] ? 0 : 1;
	int bad = open_quick_ring(&sides[port], request->largest);
	struct pollfd awaited[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = quick.fd, .events = POLLIN } };

	if (!bad) {
		begin_to_count(request);
		while (!stopping && !(poll(awaited, 2, -1) > 0 && awaited[0].revents))
			return_arrived(&sides[port], direction);
		*drops = drops_of(quick.fd);
	}
	close_quick_ring();
	return bad ? bad : read_sent(request); /* the sender waits for its frames before it tells their number */
}

/* Read a line with a number behind these words. */
static int read_line(const char *form, unsigned long long *number)
{
	char line[64];

	if (!stopping && (!fgets(line, sizeof(line), stdin) || sscanf(line, form, number) != 1))
		return complain(BAD_REQUEST, "request: a line `%s` must follow in an exchange", form);
	return 0;
}

/* Send and count. See request.c for the lines of an exchange. */
static int exchange(const struct request *request)
{
	int own = sides[LEFT].port->absent ? RIGHT : LEFT;
	unsigned long long go;

	if (!request->entry[own][0].bytes || !sides[!own].port->absent)
		return complain(BAD_REQUEST, "request: an exchange needs one port, and the header of its frames");
	plan.stream[!own].due = FINISHED;
	tell_counting(request);
	count_until_line();
	if (read_line("go=%llu", &go) || send_all(request))
		return -1;
	printf("{\"sent\":%llu}\n", plan.stream[own].sent - sides[own].unsent);
	fflush(stdout);
	count_until_line();
	return read_line("sent=%llu", &plan.stream[!own].sent);
}

static int packet_ring_run(const struct request *request, struct outcome *outcome)
{
	uint64_t unreturned = 0;

	if (request->burst)
		return complain(BAD_REQUEST, "request: the engine packet-ring has no closed loop");
	arrived(0); /* drop the remaining frames of the previous trial */
	for (int i = 0; i < 2; i++) /* marks of other headers' frames are at other places */
		memset(sides[i].frames, 0, sizeof(sides[i].frames));
	for (int i = 0; i < 2; i++) {
		counters_reset(&counters[i]);
		arrivals[i].highest = HIGHEST_AT_START;
		arrivals[i].skipped = 0;
		sides[i].unsent = sides[i].filled = 0;
		sides[i].batch = 1; /* the first frame shows how long one takes */
		if (!sides[i].port->absent)
			drops_of(sides[i].receiver);
	}
	comes_back = request->part == ROUND_TRIP;
	sent_only = request->part == EXCHANGE ? sides[LEFT].port->absent : NO_DIRECTION;
	if (request->part == EXCHANGE ? exchange(request) :
	    request->part == COUNT ? count_until_sent(request) :
	    request->part == RETURN ? return_until_sent(request, &unreturned) : send_all(request))
		return -1;
	for (int i = 0; i < 2; i++) /* the direction with this number starts at the port with this number */
		plan.stream[i].sent -= sides[i].unsent;
	if (request->part != SEND && request->part != RETURN)
		wait_for_arrivals(&plan, request, arrived);
	for (int i = 0; i < 2; i++) {
		uint64_t drops = sides[i].port->absent ? 0 : request->part == RETURN ? unreturned : drops_of(sides[i].receiver);

		counters_add(&outcome->counters[i], &counters[i]);
		outcome->last_lost[i] = NONE_LOST;
		if (request->part != SEND && request->part != RETURN)
			outcome->last_lost[i] = last_lost(&arrivals[i], plan.stream[i].sent);
		if (drops)
			snprintf(outcome->own_drops_reason, sizeof(outcome->own_drops_reason),
				 "the receive ring of %s was full", sides[i].port->interface);
		outcome->own_drops += drops;
	}
	return 0;
}

const struct engine packet_ring_engine = { "packet-ring", packet_ring_open, packet_ring_plan, packet_ring_run,
					   packet_ring_listen, packet_ring_close };
