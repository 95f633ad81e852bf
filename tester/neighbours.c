// SPDX-License-Identifier: Apache-2.0
/*
 * Neighbours: a router on the path asks for the MAC of an address before it sends a frame there, by ARP (RFC 826) or by
 * a neighbour solicitation (RFC 4861). The tester answers for its own addresses, and only for these: those of its flows,
 * and the address of a port that the topology gives. It also asks, for the MAC of a gateway.
 *
 * Beside the engine xdp, a packet socket on each port gets these messages alone, by a filter, and a thread sleeps until one
 * comes. So the tester answers at any time, and test frames cost nothing more: the XDP program has taken them before. The
 * engine packet-ring hands the messages over that it finds in its rings, because the kernel would look at each test frame for
 * one more socket. The thread gets no signal:
 * those that end the sender's system call would miss it, and each further call takes milliseconds to begin.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tester.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define ETHERTYPE_ARP 0x0806
#define PROTOCOL_ICMPV6 58
#define SOLICITATION 135
#define ADVERTISEMENT 136
#define ARP_REQUEST 1
#define ARP_REPLY 2
#define TAG 4 /* bytes */
#define ETHERNET 14
#define ARP 28 /* bytes, for IPv4 over Ethernet */
#define DISCOVERY 32 /* bytes of a solicitation or advertisement with the MAC of its sender */
#define MOST_MESSAGE 128
#define MOST_QUESTIONS 4 /* of a trial, that are told */
#define LOOK_AGAIN_MS 5
#define LOOKS 600        /* at the answer to a question of the tester */
#define LOOKS_OF_ASKED 20 /* until the tester asks again */

/* An IPv6 address, or an IPv4 address in its last four bytes behind zeros. */
struct address {
	unsigned char bytes[16];
};

struct question {
	struct address by, for_;
	int port, ipv6;
};

static struct side {
	int socket; /* -1: the port is another process's */
	unsigned char mac[6];
	struct { /* `count` addresses, of which the last 16 bits count up */
		struct address first;
		unsigned int count;
	} own[MAX_OWN];
} sides[2] = { { .socket = -1 }, { .socket = -1 } };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows, and of the own addresses */
static struct question questions[MOST_QUESTIONS]; /* that this tester does not answer */
static unsigned int number_of_questions, seen;

static struct { /* what this tester asks for */
	struct address address;
	int port;
	int answered;
	unsigned char mac[6];
} asked = { .port = -1 };

static int is_ipv6(const struct address *address)
{
	static const struct address none;

	return memcmp(address, &none, 12) != 0;
}

static struct address ipv4_at(const unsigned char *bytes)
{
	struct address found = { { 0 } };

	memcpy(found.bytes + 12, bytes, 4);
	return found;
}

static struct address ipv6_at(const unsigned char *bytes)
{
	struct address found;

	memcpy(found.bytes, bytes, 16);
	return found;
}

static int read_address(const char *text, struct address *address)
{
	*address = (struct address){ { 0 } };
	return inet_pton(AF_INET6, text, address->bytes) == 1 || inet_pton(AF_INET, text, address->bytes + 12) == 1 ? 0 : -1;
}

static const char *address_text(const struct address *address, char text[INET6_ADDRSTRLEN])
{
	int ipv6 = is_ipv6(address);

	return inet_ntop(ipv6 ? AF_INET6 : AF_INET, address->bytes + (ipv6 ? 0 : 12), text, INET6_ADDRSTRLEN);
}

static unsigned int last_two(const struct address *address)
{
	return address->bytes[14] << 8 | address->bytes[15];
}

static int is_own(const struct side *side, const struct address *address)
{
	for (int i = 0; i < MAX_OWN; i++) {
		unsigned int first = last_two(&side->own[i].first), step = last_two(address) - first;

		if (!memcmp(&side->own[i].first, address, 14) && last_two(address) >= first && step < side->own[i].count)
			return 1;
	}
	return 0;
}

static uint16_t checksum(const unsigned char *header, const unsigned char *message, unsigned int length)
{
	uint32_t sum = PROTOCOL_ICMPV6 + length;

	for (int i = 8; i < 40; i += 2) /* both addresses */
		sum += header[i] << 8 | header[i + 1];
	for (unsigned int i = 0; i < length; i += 2)
		sum += message[i] << 8 | message[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static unsigned int put_short(unsigned char *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value;
	return 2;
}

/* An ARP message behind the Ethernet header. Returns its length. */
static unsigned int write_arp(unsigned char *at, int operation, const unsigned char *mac, const struct address *sender,
			      const unsigned char *target_mac, const struct address *target)
{
	static const unsigned char kind[] = { 0, 1, 8, 0, 6, 4 };

	memcpy(at, kind, sizeof(kind));
	put_short(at + 6, operation);
	memcpy(at + 8, mac, 6);
	memcpy(at + 14, sender->bytes + 12, 4);
	memcpy(at + 18, target_mac, 6);
	memcpy(at + 24, target->bytes + 12, 4);
	return ARP;
}

/* A solicitation or advertisement of `target`, with the MAC of its sender. Returns its length with the IPv6 header. */
static unsigned int write_discovery(unsigned char *at, int type, const unsigned char *mac, const struct address *source,
				    const struct address *destination, const struct address *target)
{
	unsigned char *message = at + IPV6_HEADER;

	memset(at, 0, IPV6_HEADER + DISCOVERY);
	at[0] = 0x60;
	put_short(at + 4, DISCOVERY);
	at[6] = PROTOCOL_ICMPV6;
	at[7] = 255;
	memcpy(at + 8, source, 16);
	memcpy(at + 24, destination, 16);
	message[0] = type;
	message[4] = type == ADVERTISEMENT ? 0x60 : 0; /* solicited, and in place of what was known */
	memcpy(message + 8, target, 16);
	message[24] = type == ADVERTISEMENT ? 2 : 1; /* the option with the MAC of the target, or of the source */
	message[25] = 1;
	memcpy(message + 26, mac, 6);
	put_short(message + 2, checksum(at, message, DISCOVERY));
	return IPV6_HEADER + DISCOVERY;
}

static void note_question(int port, const struct address *by, const struct address *for_)
{
	struct question question = { *by, *for_, port, 0 };

	if (!memcmp(by, for_, sizeof(*by))) /* an announcement of its sender */
		return;
	for (unsigned int i = 0; i < number_of_questions; i++)
		if (!memcmp(&questions[i], &question, sizeof(question)))
			return;
	if (number_of_questions < MOST_QUESTIONS)
		questions[number_of_questions++] = question;
}

static void note_answer(int port, const struct address *address, const unsigned char *mac)
{
	if (port != asked.port || asked.answered || memcmp(address, &asked.address, sizeof(*address)) || mac[0] & 1)
		return;
	memcpy(asked.mac, mac, 6);
	asked.answered = 1;
}

/* The answer to a message behind `header` bytes of Ethernet header. Returns the answer's length; 0: it needs none. */
static unsigned int answer_arp(int port, const unsigned char *message, unsigned int length, unsigned char *answer)
{
	struct address sender, target;

	if (length < ARP || message[2] != 8 || message[3] != 0 || message[4] != 6 || message[5] != 4)
		return 0;
	sender = ipv4_at(message + 14);
	target = ipv4_at(message + 24);
	note_answer(port, &sender, message + 8);
	if (message[6] || message[7] != ARP_REQUEST)
		return 0;
	if (is_own(&sides[port], &target))
		return write_arp(answer, ARP_REPLY, sides[port].mac, &target, message + 8, &sender);
	note_question(port, &sender, &target);
	return 0;
}

static unsigned int answer_discovery(int port, const unsigned char *packet, unsigned int length, unsigned char *answer)
{
	static const struct address unspecified;
	const unsigned char *message = packet + IPV6_HEADER;
	struct address source, target;

	if (length < IPV6_HEADER + 24 || packet[7] != 255)
		return 0;
	source = ipv6_at(packet + 8);
	target = ipv6_at(message + 8);
	if (message[0] == ADVERTISEMENT && length >= IPV6_HEADER + DISCOVERY && message[24] == 2)
		note_answer(port, &target, message + 26);
	/* The sender of a question without an address wants to have the address that it asks for (RFC 4862). */
	if (message[0] != SOLICITATION || !memcmp(&source, &unspecified, sizeof(source)))
		return 0;
	if (is_own(&sides[port], &target))
		return write_discovery(answer, ADVERTISEMENT, sides[port].mac, &target, &source, &target);
	note_question(port, &source, &target);
	return 0;
}

/* Put a tag (ethertype << 16 | value) that the kernel has taken out of the frame back. Returns the new length. */
static unsigned int insert_tag(unsigned char *frame, unsigned int length, uint32_t tag)
{
	memmove(frame + 12 + TAG, frame + 12, length - 12);
	put_short(frame + 12, tag >> 16);
	put_short(frame + 14, tag);
	return length + TAG;
}

static unsigned int restore_tag(unsigned char *frame, unsigned int length, struct msghdr *message)
{
	for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each; each = CMSG_NXTHDR(message, each)) {
		struct tpacket_auxdata data;

		if (each->cmsg_level != SOL_PACKET || each->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&data, CMSG_DATA(each), sizeof(data));
		if (!(data.tp_status & TP_STATUS_VLAN_VALID))
			continue;
		return insert_tag(frame, length,
				  (data.tp_status & TP_STATUS_VLAN_TPID_VALID ? data.tp_vlan_tpid : ETHERTYPE_VLAN) << 16 |
					  data.tp_vlan_tci);
	}
	return length;
}

static void answer_message(int port, const unsigned char *frame, unsigned int length)
{
	unsigned char answer[MOST_MESSAGE + TAG] = { 0 };
	unsigned int header = ETHERNET, type, written;

	for (type = short_at(frame + 12); type == ETHERTYPE_VLAN || type == ETHERTYPE_SERVICE; header += TAG) {
		if (header + TAG > length || header > ETHERNET + 2 * TAG)
			return;
		type = short_at(frame + header + 2);
	}
	if (length < header + ARP)
		return;
	if (type == ETHERTYPE_ARP)
		written = answer_arp(port, frame + header, length - header, answer + header);
	else if (type == ETHERTYPE_IPV6 && frame[header + 6] == PROTOCOL_ICMPV6)
		written = answer_discovery(port, frame + header, length - header, answer + header);
	else
		return;
	seen++;
	if (!written)
		return;
	memcpy(answer, frame + 6, 6);
	memcpy(answer + 6, sides[port].mac, 6);
	memcpy(answer + 12, frame + 12, header - 12);
	written += header;
	/* A shorter frame is none of Ethernet. The other side asks again if this one finds no room. */
	send(sides[port].socket, answer, written < MIN_FRAME_BYTES - FCS_BYTES ? MIN_FRAME_BYTES - FCS_BYTES : written,
	     MSG_DONTWAIT);
}

static void read_messages(void)
{
	for (int port = 0; port < 2; port++) {
		unsigned char frame[MOST_MESSAGE + TAG];
		char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		struct iovec vector = { frame, MOST_MESSAGE };
		ssize_t length;

		if (sides[port].socket < 0)
			continue;
		for (;;) {
			struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
						  .msg_controllen = sizeof(control) };

			length = recvmsg(sides[port].socket, &message, MSG_DONTWAIT);
			if (length < 0)
				break;
			if (length < ETHERNET)
				continue;
			length = restore_tag(frame, length, &message);
			pthread_mutex_lock(&lock);
			answer_message(port, frame, length);
			pthread_mutex_unlock(&lock);
		}
	}
}

static void *answer_all(void *nothing)
{
	struct pollfd awaited[2] = { { .fd = sides[LEFT].socket, .events = POLLIN },
				     { .fd = sides[RIGHT].socket, .events = POLLIN } };

	setpriority(PRIO_PROCESS, 0, -20); /* of this thread: the sender has all time of their CPU otherwise */
	for (;;) {
		poll(awaited, 2, -1);
		read_messages();
	}
	return nothing;
}

/* ARP, and ICMPv6 solicitations and advertisements, with at most one tag that the kernel left in the frame. */
static int set_filter(int socket)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LDX | BPF_IMM, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_VLAN, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_SERVICE, 0, 2),
		BPF_STMT(BPF_LDX | BPF_IMM, TAG),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12 + TAG),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_ARP, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 0, 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, ETHERNET + 6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROTOCOL_ICMPV6, 0, 4),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, ETHERNET + IPV6_HEADER),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOLICITATION, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ADVERTISEMENT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, MOST_MESSAGE),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

/* Until it is bound, a socket of protocol 0 receives nothing. */
static int open_socket(const struct port *port, int listen)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = listen ? htons(ETH_P_ALL) : 0,
				       .sll_ifindex = (int)port->ifindex };
	struct packet_mreq multicast = { .mr_ifindex = (int)port->ifindex, .mr_type = PACKET_MR_ALLMULTI };
	int found = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (found < 0 || set_filter(found) || setsockopt(found, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) ||
	    setsockopt(found, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(found, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &multicast, sizeof(multicast)) ||
	    bind(found, (struct sockaddr *)&address, sizeof(address)))
		return complain(BROKEN, "port %s: no packet socket on %s for the questions of routers: %s", port->name,
				port->interface, strerror(errno));
	return found;
}

void neighbours_take(int port, const void *received, unsigned int length, unsigned int tag)
{
	const unsigned char *bytes = received;
	unsigned char frame[MOST_MESSAGE + TAG];

	length = length < MOST_MESSAGE ? length : MOST_MESSAGE;
	if (length < ETHERNET)
		return;
	memcpy(frame, bytes, length);
	if (tag)
		length = insert_tag(frame, length, tag);
	pthread_mutex_lock(&lock);
	answer_message(port, frame, length);
	pthread_mutex_unlock(&lock);
}

int neighbours_open(const struct port ports[2], int listen)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	for (int i = 0; i < 2; i++) {
		int found;

		if (ports[i].absent)
			continue;
		memcpy(sides[i].mac, ports[i].mac, sizeof(sides[i].mac));
		if (port_enter(&ports[i]))
			return -1;
		found = open_socket(&ports[i], listen);
		if (port_leave(&ports[i]) || found < 0)
			return -1;
		sides[i].socket = found;
	}
	if (!listen)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, answer_all, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? complain(BROKEN, "cannot start a thread: %s", strerror(error)) : 0;
}

/* `value` is ADDRESS/COUNT with commas. */
static int set_own(int port, char *value)
{
	struct side new = sides[port];
	char *rest = NULL;
	int number = 0;

	memset(new.own, 0, sizeof(new.own));
	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest), number++) {
		char *slash = strchr(word, '/'), extra;

		if (number < MAX_OWN && slash && sscanf(slash, "/%u%c", &new.own[number].count, &extra) == 1) {
			*slash = '\0';
			if (!read_address(word, &new.own[number].first))
				continue;
		}
		return complain(BAD_REQUEST, "request: %s.own: must be at most %d of ADDRESS/COUNT, with commas", port_name[port],
				MAX_OWN);
	}
	pthread_mutex_lock(&lock);
	sides[port] = new;
	pthread_mutex_unlock(&lock);
	return 0;
}

int neighbours_set(char *own[2])
{
	for (int port = 0; port < 2; port++)
		if (own[port] && set_own(port, own[port]))
			return -1;
	return 0;
}

void neighbours_begin(void)
{
	pthread_mutex_lock(&lock);
	seen = 0;
	pthread_mutex_unlock(&lock);
}

unsigned int neighbours_seen(void)
{
	return seen;
}

void neighbours_print(void)
{
	char by[INET6_ADDRSTRLEN], for_[INET6_ADDRSTRLEN];

	pthread_mutex_lock(&lock);
	printf(",\"unanswered\":[");
	for (unsigned int i = 0; i < number_of_questions; i++)
		printf("%s{\"port\":\"%s\",\"by\":\"%s\",\"for\":\"%s\"}", i ? "," : "", port_name[questions[i].port],
		       address_text(&questions[i].by, by), address_text(&questions[i].for_, for_));
	printf("]");
	number_of_questions = 0; /* those until the next trial are told with it */
	pthread_mutex_unlock(&lock);
}

static unsigned int write_question(int port, const struct address *own, unsigned char *frame, const unsigned char *tags,
				   unsigned int tag_bytes)
{
	static const unsigned char all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, nobody[6];
	struct address group = { { 0xff, 2, [11] = 1, [12] = 0xff } }; /* the solicited-node address, RFC 4291 section 2.7.1 */
	unsigned int at = 12 + tag_bytes;

	memcpy(frame + 6, sides[port].mac, 6);
	memcpy(frame + 12, tags, tag_bytes);
	if (!is_ipv6(&asked.address)) {
		memcpy(frame, all, 6);
		at += put_short(frame + at, ETHERTYPE_ARP);
		return at + write_arp(frame + at, ARP_REQUEST, sides[port].mac, own, nobody, &asked.address);
	}
	memcpy(group.bytes + 13, asked.address.bytes + 13, 3);
	put_short(frame, 0x3333);
	memcpy(frame + 2, group.bytes + 12, 4);
	at += put_short(frame + at, ETHERTYPE_IPV6);
	return at + write_discovery(frame + at, SOLICITATION, sides[port].mac, own, &group, &asked.address);
}

/* `line` is ask=PORT ADDRESS OWN-ADDRESS [TAGS], with tags in hexadecimal digits. Prints {"neighbour": {"mac": ...}}. */
int neighbours_ask(const char *line, void (*listen)(int milliseconds))
{
	char name[8], address[INET6_ADDRSTRLEN + 1], own_address[INET6_ADDRSTRLEN + 1], digits[17] = "";
	unsigned char frame[MOST_MESSAGE + 2 * TAG] = { 0 }, tags[2 * TAG];
	const struct timespec pause = { .tv_nsec = LOOK_AGAIN_MS * 1000000 };
	unsigned int tag_bytes, byte, length;
	struct address own, wanted;
	int port, answered = 0;

	if (sscanf(line, "ask=%7s %46s %46s %16s", name, address, own_address, digits) < 3 || read_address(own_address, &own) ||
	    read_address(address, &wanted) || is_ipv6(&own) != is_ipv6(&wanted) || strlen(digits) % (2 * TAG) ||
	    strspn(digits, "0123456789abcdef") != strlen(digits))
		return complain(BAD_REQUEST, "request: must be ask=PORT ADDRESS OWN-ADDRESS, of one family, and tags");
	port = !strcmp(name, port_name[RIGHT]);
	if (strcmp(name, port_name[port]) || sides[port].socket < 0)
		return complain(BAD_REQUEST, "request: there is no port %s", name);
	tag_bytes = strlen(digits) / 2;
	for (unsigned int i = 0; i < tag_bytes; i++) {
		sscanf(digits + 2 * i, "%2x", &byte);
		tags[i] = byte;
	}
	pthread_mutex_lock(&lock);
	asked.address = wanted;
	asked.answered = 0;
	asked.port = port;
	length = write_question(port, &own, frame, tags, tag_bytes);
	pthread_mutex_unlock(&lock);
	if (length < MIN_FRAME_BYTES - FCS_BYTES)
		length = MIN_FRAME_BYTES - FCS_BYTES;
	for (int i = 0; i < LOOKS && !answered && !stopping; i++) {
		if (i % LOOKS_OF_ASKED == 0 && send(sides[port].socket, frame, length, MSG_DONTWAIT) < 0 && errno != ENOBUFS &&
		    errno != EAGAIN)
			return complain(BROKEN, "port %s: cannot ask for %s: %s", name, address, strerror(errno));
		if (listen)
			listen(LOOK_AGAIN_MS);
		else
			nanosleep(&pause, NULL);
		pthread_mutex_lock(&lock);
		answered = asked.answered;
		pthread_mutex_unlock(&lock);
	}
	if (!answered)
		return complain(BAD_REQUEST, "port %s: nobody answers for the address %s, asked from %s", name, address, own_address);
	printf("{\"neighbour\":{\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\"}}\n", asked.mac[0], asked.mac[1], asked.mac[2],
	       asked.mac[3], asked.mac[4], asked.mac[5]);
	fflush(stdout);
	return 0;
}
