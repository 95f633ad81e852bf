// SPDX-License-Identifier: Apache-2.0
/*
 * A request for a trial, and the plan that follows from it. A request is a line of words:
 *
 *     load=100000 duration=1 settle=0.05 sizes=64,570 directions=left-to-right,right-to-left flows=1
 *     left-to-right.mac=02:00:00:00:00:01 left-to-right.address=198.19.0.1 left-to-right.udp-port=7
 *
 * With groups=4, the flows are in so many groups, each with a destination of its own. A number names the group of an
 * entry, and without a number it is the first one: left-to-right.4.mac=02:00:00:00:00:04
 *
 * With train=32, so many frames are due together. For a closed loop, with load=0: burst=32 windows=32 warm-up=512
 * With frames=500, so many frames leave at this load. `duration` is then the longest time.
 * With overload=200000 overload-duration=2, frames leave at this load first, and then at `load` for `duration`.
 *
 * A trial of two processes, each with one port, has the same trial=7 in both requests. The request of the one that sends
 * has part=send, and its direction has the addresses of both ends: left-to-right.source=10.244.1.5. The request of the
 * other one has part=count, and a line sent=50000 follows when all frames are sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tester.h"

#define LEFT_NETWORK 0xc612u  /* 198.18 */
#define RIGHT_NETWORK 0xc613u /* 198.19 */
#define FIRST_THIRD_OCTET 16        /* leaves 198.18.0.0/20 and 198.19.0.0/20 to the testbed, up to 60 960 flows */
#define TTL 64
#define UDP_SOURCE_PORT 0xc020 /* both as in RFC 2544 appendix C.2.6.4 */
#define UDP_DESTINATION_PORT 7
#define ADDRESS "an IPv4 address in 198.18.0.0/15"

static int bad(const char *key, const char *value, const char *allowed)
{
	return complain(BAD_REQUEST, "request: %s=%s: must be %s", key, value, allowed);
}

static int read_number(const char *key, const char *value, double lowest, double highest, const char *allowed, double *number)
{
	char *end;

	*number = strtod(value, &end);
	if (end == value || *end || !(*number >= lowest && *number <= highest))
		return bad(key, value, allowed);
	return 0;
}

static int read_whole(const char *key, const char *value, unsigned int lowest, unsigned int highest, const char *allowed,
		      unsigned int *whole)
{
	double number;

	if (read_number(key, value, lowest, highest, allowed, &number))
		return -1;
	*whole = number;
	return *whole == number ? 0 : bad(key, value, allowed);
}

static int read_sizes(const char *key, char *value, struct request *request)
{
	char *rest = NULL;
	unsigned int size;

	request->sizes = 0;
	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (request->sizes == MAX_SIZES)
			return bad(key, word, "one of at most 64 sizes");
		if (read_whole(key, word, MIN_FRAME_BYTES, MAX_FRAME_BYTES, "64 to 3000 bytes, with FCS", &size))
			return -1;
		request->size[request->sizes++] = size;
	}
	return request->sizes ? 0 : bad(key, "", "one size or more");
}

static int read_directions(const char *key, char *value, struct request *request)
{
	char *rest = NULL;

	request->directions[0] = request->directions[1] = 0;
	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		int direction = !strcmp(word, direction_name[1]);

		if (strcmp(word, direction_name[direction]))
			return bad(key, word, "left-to-right, right-to-left, or both with a comma");
		request->directions[direction] = 1;
	}
	return request->directions[0] || request->directions[1] ? 0 : bad(key, "", "one direction or both");
}

static int read_entry(const char *key, const char *value, const char *what, struct entry *entry)
{
	unsigned int octet[6];
	unsigned int number;
	char extra;

	if (!strcmp(what, "mac")) {
		if (sscanf(value, "%2x:%2x:%2x:%2x:%2x:%2x%c", octet, octet + 1, octet + 2, octet + 3, octet + 4,
			   octet + 5, &extra) != 6)
			return bad(key, value, "a MAC address");
		for (int i = 0; i < 6; i++)
			entry->mac[i] = octet[i];
		entry->has_mac = 1;
		return 0;
	}
	if (!strcmp(what, "address")) {
		if (inet_pton(AF_INET, value, &entry->address) != 1)
			return bad(key, value, ADDRESS);
		entry->has_address = 1;
		return 0;
	}
	if (!strcmp(what, "source")) {
		if (inet_pton(AF_INET, value, &entry->source) != 1)
			return bad(key, value, "an IPv4 address");
		entry->has_source = 1;
		return 0;
	}
	if (!strcmp(what, "udp-port")) {
		if (read_whole(key, value, 1, 65535, "1 to 65535", &number))
			return -1;
		entry->udp_port = number;
		return 0;
	}
	return complain(BAD_REQUEST, "request: %s is no word of a request", key);
}

/* `what` is WHAT or NUMBER.WHAT. The entry of this group, counted from 1. */
static int read_entry_of_group(const char *key, const char *value, const char *what, struct entry *entries)
{
	char *dot = strchr(what, '.'), number[8] = "1";
	unsigned int group;

	if (dot)
		snprintf(number, sizeof(number), "%.*s", (int)(dot - what), what);
	if (read_whole(key, number, 1, MAX_GROUPS, "the entry of a group from 1 to 16", &group))
		return -1;
	entries[group - 1].given = 1;
	return read_entry(key, value, dot ? dot + 1 : what, &entries[group - 1]);
}

static int read_burst(const char *key, const char *value, unsigned int *frames)
{
	if (read_whole(key, value, 1, WINDOW, "1 to 64 frames", frames))
		return -1;
	return WINDOW % *frames ? bad(key, value, "a power of two") : 0;
}

static int read_part(const char *key, const char *value, enum part *part)
{
	*part = !strcmp(value, "send") ? SEND : COUNT;
	return *part == COUNT && strcmp(value, "count") ? bad(key, value, "send or count") : 0;
}

static int read_word(char *key, char *value, struct request *request)
{
	char *dot = strchr(key, '.');

	if (!strcmp(key, "load"))
		return read_number(key, value, 0, 1e9, "0 to 1e9 frames/s", &request->load);
	if (!strcmp(key, "duration"))
		return read_number(key, value, 0.001, 86400, "0.001 to 86400 s", &request->duration);
	if (!strcmp(key, "overload"))
		return read_number(key, value, 0.001, 1e9, "0.001 to 1e9 frames/s", &request->overload);
	if (!strcmp(key, "overload-duration"))
		return read_number(key, value, 0.001, 86400, "0.001 to 86400 s", &request->overload_duration);
	if (!strcmp(key, "frames"))
		return read_whole(key, value, 1, 1000000000, "1 to 1e9", &request->frames);
	if (!strcmp(key, "settle"))
		return read_number(key, value, 0, 60, "0 to 60 s", &request->settle);
	if (!strcmp(key, "burst"))
		return read_burst(key, value, &request->burst);
	if (!strcmp(key, "train"))
		return read_burst(key, value, &request->train);
	if (!strcmp(key, "windows"))
		return read_whole(key, value, 1, MAX_WINDOWS, "1 to 64", &request->windows);
	if (!strcmp(key, "warm-up")) {
		if (read_whole(key, value, 0, 2 * MAX_FLOWS, "0 to 131072 frames", &request->warm_up))
			return -1;
		return request->warm_up % WINDOW ? bad(key, value, "a multiple of 64") : 0;
	}
	if (!strcmp(key, "part"))
		return read_part(key, value, &request->part);
	if (!strcmp(key, "trial"))
		return read_whole(key, value, 1, 65535, "1 to 65535", &request->trial);
	if (!strcmp(key, "flows"))
		return read_whole(key, value, 1, MAX_FLOWS, "1 to 65536", &request->flows);
	if (!strcmp(key, "groups"))
		return read_whole(key, value, 1, MAX_GROUPS, "1 to 16", &request->groups);
	if (!strcmp(key, "sizes"))
		return read_sizes(key, value, request);
	if (!strcmp(key, "directions"))
		return read_directions(key, value, request);
	for (int direction = 0; dot && direction < 2; direction++)
		if (strlen(direction_name[direction]) == (size_t)(dot - key) &&
		    !strncmp(key, direction_name[direction], dot - key))
			return read_entry_of_group(key, value, dot + 1, request->entry[direction]);
	return complain(BAD_REQUEST, "request: %s is no word of a request", key);
}

int request_parse(char *line, struct request *request)
{
	char *rest = NULL;

	*request = (struct request){ .duration = -1, .load = -1, .settle = 0.05, .directions = { 1, 0 }, .flows = 1,
				     .groups = 1, .train = 1, .sizes = 1, .size = { 64 } };
	for (char *word = strtok_r(line, " \t\r\n", &rest); word; word = strtok_r(NULL, " \t\r\n", &rest)) {
		char *value = strchr(word, '=');

		if (!value)
			return complain(BAD_REQUEST, "request: `%s` is not KEY=VALUE", word);
		*value++ = '\0';
		if (read_word(word, value, request))
			return -1;
	}
	if (request->load < 0 || request->duration < 0)
		return complain(BAD_REQUEST, "request: load and duration must be given");
	if (!request->overload != !request->overload_duration || (request->overload && !request->load))
		return complain(BAD_REQUEST, "request: overload needs a duration and a load that follows");
	if (request->frames && (request->overload || request->burst))
		return complain(BAD_REQUEST, "request: frames goes with neither a closed loop nor an overload");
	if (request->flows % request->groups)
		return complain(BAD_REQUEST, "request: flows must be a multiple of groups");
	for (int i = 0; i < 2 * MAX_GROUPS; i++)
		if (request->entry[i / MAX_GROUPS][i % MAX_GROUPS].given && i % MAX_GROUPS >= (int)request->groups)
			return complain(BAD_REQUEST, "request: an entry is of group %d, and there are %u", i % MAX_GROUPS + 1,
					request->groups);
	if (request->train > 1 && !request->load)
		return complain(BAD_REQUEST, "request: a train needs a load");
	for (int i = 0; i < 2 * MAX_GROUPS; i++) {
		const struct entry *entry = &request->entry[i / MAX_GROUPS][i % MAX_GROUPS];
		int direction = i / MAX_GROUPS;
		char text[INET_ADDRSTRLEN];

		if (entry->has_source && (!entry->has_address || request->groups > 1))
			return complain(BAD_REQUEST, "request: a source needs an address, and goes with one group");
		/* Frames must not leave the testbed. Only a sender that knows both ends may use other addresses. */
		if (entry->has_address && !entry->has_source && ntohl(entry->address) >> 17 != LEFT_NETWORK >> 1)
			return bad(direction ? "right-to-left.address" : "left-to-right.address",
				   inet_ntop(AF_INET, &entry->address, text, sizeof(text)), ADDRESS);
	}
	if (request->part != WHOLE && (request->burst || !request->trial || request->directions[0] + request->directions[1] > 1))
		return complain(BAD_REQUEST, "request: a part needs a trial and one direction, and goes with no closed loop");
	if (!request->burst != !request->windows || (request->burst && request->load))
		return complain(BAD_REQUEST, "request: a closed loop needs burst and windows, and load=0");
	return 0;
}

/* Host parts 1 to 254 first; the 512 flows beyond 65 024 take 0 and 255. */
static uint16_t flow_host(unsigned int flow)
{
	unsigned int plain = 256 * 254;
	unsigned int third = flow < plain ? flow / 254 : (flow - plain) / 2;
	unsigned int fourth = flow < plain ? 1 + flow % 254 : (flow - plain) % 2 * 255;

	return htons(((third + FIRST_THIRD_OCTET) & 255) << 8 | fourth);
}

static struct header header_make(const struct entry *entry, const struct port *from, const struct port *to, int direction)
{
	struct header made = { .destination = !entry->has_address };
	unsigned char header[sizeof(made.words)] = { 0 };
	uint16_t network[2] = { htons(LEFT_NETWORK), htons(RIGHT_NETWORK) };
	uint16_t ports[2] = { htons(UDP_SOURCE_PORT), htons(entry->udp_port ? entry->udp_port : UDP_DESTINATION_PORT) };
	uint16_t word;

	memcpy(header, entry->has_mac ? entry->mac : to->mac, 6);
	memcpy(header + 6, from->mac, 6);
	header[12] = 0x08; /* IPv4 */
	header[14] = 0x45;
	header[22] = TTL;
	header[23] = IPPROTO_UDP;
	memcpy(header + 26, &network[direction], 2);
	memcpy(header + 30, &network[!direction], 2);
	if (entry->has_source)
		memcpy(header + 26, &entry->source, 2); /* the table of hosts has the rest */
	if (entry->has_address)
		memcpy(header + 30, &entry->address, 4);
	memcpy(header + 34, ports, 4);

	for (int at = 14; at < 34; at += 2) {
		memcpy(&word, header + at, 2);
		made.checksum += word;
	}
	memcpy(made.words, header, sizeof(header));
	return made;
}

static struct pace pace_make(double load)
{
	long double gap = 1e9L / load;

	return (struct pace){ .gap = llroundl(gap * (1 << FRACTION_BITS)), .allowance = fmaxl(16 * gap, 20000),
			      .spacing = gap * 3 / 4 };
}

static void stream_pace(struct stream *stream, const struct request *request, int both)
{
	unsigned long long first = llround(request->overload * request->overload_duration);

	if (request->load == 0) { /* due at any time, each direction in turn */
		stream->pace.gap = 1;
		/* The beginning of one more burst is the end of the last window. */
		stream->count = request->burst ? request->warm_up + WINDOW * request->windows + request->burst : UINT64_MAX;
		if (request->frames)
			stream->count = request->frames;
		stream->pace.allowance = stream->late_after = UINT64_MAX;
		return;
	}
	stream->pace = stream->next_pace = pace_make(request->load);
	if (first) {
		stream->pace = pace_make(request->overload);
		stream->change = first;
	}
	stream->train = request->train - 1;
	stream->count = first + llround(request->load * request->duration);
	if (request->frames)
		stream->count = request->frames;
	if (!stream->count)
		stream->count = 1;
	stream->due = both ? stream->pace.gap / 2 : 0;
	stream->late_after = LATE_NS;
}

void plan_make(struct plan *plan, const struct request *request, const struct port ports[2], uint16_t trial)
{
	const struct entry *entry = &request->entry[!request->directions[0]][0];
	double grace = request->load ? fmax(request->duration / 200, 0.002) : 0; /* to make up for a stall near the end */

	plan->start = 0;
	plan->stop = (request->overload_duration + request->duration + grace) * 1e9;
	plan->failures = 0;
	plan->calls = 0;
	/* Reading the clock is a tenth of the work. As fast as possible, frames go in bulks of 16 anyway. */
	plan->clock_mask = request->load || request->burst ? 0 : 7;
	plan->burst = request->burst;
	plan->warm_up = request->warm_up;
	plan->flows = request->flows;
	plan->groups = request->groups;
	plan->sizes = request->sizes;
	plan->largest = 0;
	plan->trial = trial;
	for (unsigned int i = 0; i < request->sizes; i++) {
		plan->length[i] = request->size[i] - FCS_BYTES;
		if (plan->length[i] > plan->largest)
			plan->largest = plan->length[i];
	}
	for (unsigned int flow = 0; flow < MAX_FLOWS; flow++)
		plan->host[flow] = entry->has_source ? htons(ntohl(entry->source) & 0xffff) : flow_host(flow);
	for (int direction = 0; direction < 2; direction++) {
		struct stream *stream = &plan->stream[direction];

		memset(stream, 0, sizeof(*stream));
		stream->due = FINISHED;
		if (!request->directions[direction])
			continue;
		stream->due = 0;
		for (unsigned int group = 0; group < request->groups; group++)
			stream->header[group] = header_make(&request->entry[direction][group], &ports[direction],
							    &ports[!direction], direction);
		stream_pace(stream, request, direction && request->directions[!direction]);
	}
}
