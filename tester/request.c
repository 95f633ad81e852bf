// SPDX-License-Identifier: Apache-2.0
/*
 * A request for a trial, and the plan that follows from it. A request is a line of words:
 *
 *     load=100000 duration=1 settle=0.05 sizes=64,570 directions=left-to-right,right-to-left flows=100
 *     left-to-right.header=02:00:00:00:00:02,02:00:00:00:00:01,080045...
 *     fields=28:first,32:first,16:length-14,38:length-34 checksums=24:14-34 values=4097:61439
 *
 * A header is the bytes before the payload, in hexadecimal digits, with colons and commas anywhere. Both directions have
 * one. The bytes of its fields are zero, and so are the checksums'. A field is an offset in the header and what stands
 * there: the length of the frame in memory, less a number, or the first or second value of the flow. Flow number N,
 * counted from 0, has the first value 4097 + N % 61439 here. With values=4097:61439,49184:16352, its second value is
 * 49184 + N / 61439 % 16352. With order=random, the flows have their values in pseudo-random order.
 * left-to-right.fixed=32 names the offsets of fields that do not change in this header.
 *
 * A checksum is its offset, and the bytes of the header that it covers. Two more numbers make it the checksum of a
 * protocol above IP: checksums=40:26-42:17:38 also covers the payload, a constant, and once more the field at 38.
 *
 * With groups=4, the flows are in so many groups, each with a header of its own. A number names the group of a header,
 * and without a number it is the first one: left-to-right.4.header=...
 *
 * With train=32, so many frames are due together. For a closed loop, with load=0: burst=32 windows=32 warm-up=512
 * With frames=500, so many frames leave at this load. `duration` is then the longest time.
 * With learning=60, both ports send learning frames at the beginning and again after so many seconds.
 * With overload=200000 overload-duration=2, frames leave at this load first, and then at `load` for `duration`.
 *
 * With left.own=198.18.16.1/100,198.18.0.2/1, the left port answers routers that ask for the MAC of one of 100 addresses
 * from 198.18.16.1 on, or of 198.18.0.2. It does so until another request changes that.
 *
 * A trial of two processes, each with one port, has the same trial=7 in both requests. The request of the one that sends
 * has part=send. The request of the other one has part=count, and a line sent=50000 follows when all frames are sent.
 * For round trips the parts are round-trip and return. The one that returns frames tells as latency how long it had them.
 * In an exchange, both directions are in both requests, and both have part=exchange. The line go=1 follows when both
 * processes count. The answer tells how many frames are sent, and the line sent=50000 follows with those of the other one.
 *
 * With at=1764307200.5, the first frame is not due before this moment, in seconds since the epoch. So many processes send
 * at the same time.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tester.h"

#define ETHERNET_BYTES 18 /* of a frame with FCS and without tags that are not in the packet */
#define MOST_WORDS 160 /* more than the words of 16 groups in both directions */

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

	request->sizes = request->largest = 0;
	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (request->sizes == MAX_SIZES)
			return bad(key, word, "one of at most 64 sizes");
		if (read_whole(key, word, MIN_FRAME_BYTES, MAX_FRAME_BYTES, "64 to 9022 bytes, with FCS", &size))
			return -1;
		request->size[request->sizes++] = size;
		if (size > request->largest)
			request->largest = size;
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

static int read_header(const char *key, char *value, struct entry *entry)
{
	size_t digits = 0;
	unsigned int byte;

	for (const char *each = value; *each; each++)
		if (*each != ':' && *each != ',')
			value[digits++] = *each;
	value[digits] = 0;
	if (digits % 4 || digits / 2 < MIN_HEADER || digits / 2 > MAX_HEADER || strspn(value, "0123456789abcdef") != digits)
		return bad(key, "", "an even number of bytes from 42 to 80, in hexadecimal digits");
	entry->bytes = digits / 2;
	for (unsigned int i = 0; i < entry->bytes; i++) {
		sscanf(value + 2 * i, "%2x", &byte);
		entry->header[i] = byte;
	}
	return 0;
}

/* The number of the field at this offset. -1 if there is none. */
static int field_at(const struct layout *layout, unsigned int offset)
{
	for (unsigned int i = 0; i < layout->fields; i++)
		if (layout->field[i].offset == offset)
			return i;
	return -1;
}

static int read_fields(const char *key, char *value, struct request *request)
{
	struct layout *layout = &request->layout;
	char *rest = NULL;

	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		unsigned int offset = 0, less = 0;
		char source[7], extra;
		int found = sscanf(word, "%u:%6[a-z]-%u%c", &offset, source, &less, &extra);
		struct field field = { offset, found == 3 ? LENGTH : found == 2 && !strcmp(source, "first") ? FIRST_VALUE : SECOND_VALUE,
				       less, { 0 }, { 0 } };

		if (layout->fields == MAX_FIELDS)
			return bad(key, word, "one of at most 8 fields");
		if (found < 2 || found > 3 || (field.source == LENGTH && strcmp(source, "length")) ||
		    (field.source == SECOND_VALUE && strcmp(source, "second")) || offset % 2 || offset > MAX_HEADER || less > MAX_HEADER ||
		    field_at(layout, offset) >= 0)
			return bad(key, word, "an even offset, and length less a number, first or second");
		if (field.source != LENGTH && layout->flow_fields++ < layout->fields)
			return bad(key, word, "before the fields with a length");
		layout->field[layout->fields++] = field;
	}
	return 0;
}

static int read_checksums(const char *key, char *value, struct request *request)
{
	struct layout *layout = &request->layout;
	char *rest = NULL;

	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		unsigned int offset, from, to, constant = 0, again = 0;
		char extra;
		int found = sscanf(word, "%u:%u-%u:%u:%u%c", &offset, &from, &to, &constant, &again, &extra);

		if (layout->checksums == MAX_CHECKSUMS)
			return bad(key, word, "one of at most 2 checksums");
		if ((found != 3 && found != 5) || from % 2 || to % 2 || offset % 2 || from >= to || constant > 255)
			return bad(key, word, "OFFSET:FROM-TO or OFFSET:FROM-TO:CONSTANT:OFFSET, with even offsets");
		request->covered[layout->checksums].from = from;
		request->covered[layout->checksums].to = to;
		request->covered[layout->checksums].constant = constant;
		layout->checksum[layout->checksums] = (struct checksum){ offset, found == 5 };
		layout->payload |= found == 5;
		for (unsigned int i = 0; i < layout->fields; i++)
			layout->field[i].times[layout->checksums] = (from <= layout->field[i].offset && layout->field[i].offset < to) +
								    (found == 5 && layout->field[i].offset == again);
		if (found == 5 && field_at(layout, again) < 0)
			return bad(key, word, "one that names a field; the fields go first");
		layout->checksums++;
	}
	return 0;
}

static int read_values(const char *key, char *value, struct request *request)
{
	char *rest = NULL;
	unsigned int number = 0;

	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest), number++) {
		unsigned int first, count;
		char extra;

		if (number == 2 || sscanf(word, "%u:%u%c", &first, &count, &extra) != 2 || !count || first > 65535 ||
		    count > 65536 - first)
			return bad(key, word, "one of at most two FIRST:COUNT within 0 to 65535");
		request->values[number].first = first;
		request->values[number].count = count;
	}
	return 0;
}

static int read_fixed(const char *key, char *value, const struct layout *layout, struct entry *entry)
{
	char *rest = NULL;

	for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		unsigned int offset;
		int field;

		if (read_whole(key, word, 0, MAX_HEADER, "an offset in the header", &offset))
			return -1;
		field = field_at(layout, offset);
		if (field < 0)
			return bad(key, word, "the offset of a field; the fields go first");
		entry->fixed |= 1u << field;
	}
	return 0;
}

/* `what` is WHAT or NUMBER.WHAT. The entry of this group, counted from 1. */
static int read_entry(const char *key, char *value, const char *what, struct request *request, int direction)
{
	char *dot = strchr(what, '.'), number[8] = "1";
	unsigned int group;

	if (dot)
		snprintf(number, sizeof(number), "%.*s", (int)(dot - what), what);
	if (read_whole(key, number, 1, MAX_GROUPS, "the entry of a group from 1 to 16", &group))
		return -1;
	what = dot ? dot + 1 : what;
	if (!strcmp(what, "header"))
		return read_header(key, value, &request->entry[direction][group - 1]);
	if (!strcmp(what, "fixed"))
		return read_fixed(key, value, &request->layout, &request->entry[direction][group - 1]);
	return complain(BAD_REQUEST, "request: %s is no word of a request", key);
}

static int read_burst(const char *key, const char *value, unsigned int *frames)
{
	if (read_whole(key, value, 1, WINDOW, "1 to 64 frames", frames))
		return -1;
	return WINDOW % *frames ? bad(key, value, "a power of two") : 0;
}

static int read_part(const char *key, const char *value, enum part *part)
{
	static const char *const names[] = { [SEND] = "send", [COUNT] = "count", [ROUND_TRIP] = "round-trip",
					     [RETURN] = "return", [EXCHANGE] = "exchange" };

	for (*part = SEND; *part <= EXCHANGE; (*part)++)
		if (!strcmp(value, names[*part]))
			return 0;
	return bad(key, value, "send, count, round-trip, return or exchange");
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
	if (!strcmp(key, "learning"))
		return read_number(key, value, 0.01, 86400, "0.01 to 86400 s", &request->learning);
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
	if (!strcmp(key, "at"))
		return read_number(key, value, 0, 1e11, "seconds since the epoch", &request->at);
	if (!strcmp(key, "part"))
		return read_part(key, value, &request->part);
	if (!strcmp(key, "trial"))
		return read_whole(key, value, 1, 65535, "1 to 65535", &request->trial);
	if (!strcmp(key, "flows"))
		return read_whole(key, value, 1, MAX_FLOWS, "1 to 1048576", &request->flows);
	if (!strcmp(key, "mtu"))
		return read_whole(key, value, 1, 65535, "1 to 65535 bytes", &request->mtu);
	if (!strcmp(key, "fields"))
		return read_fields(key, value, request);
	if (!strcmp(key, "checksums"))
		return read_checksums(key, value, request);
	if (!strcmp(key, "values"))
		return read_values(key, value, request);
	if (!strcmp(key, "order")) {
		request->random = !strcmp(value, "random");
		return request->random || !strcmp(value, "in-turn") ? 0 : bad(key, value, "in-turn or random");
	}
	if (!strcmp(key, "groups"))
		return read_whole(key, value, 1, MAX_GROUPS, "1 to 16", &request->groups);
	if (!strcmp(key, "sizes"))
		return read_sizes(key, value, request);
	if (!strcmp(key, "directions"))
		return read_directions(key, value, request);
	if (!strcmp(key, "left.own") || !strcmp(key, "right.own")) {
		request->own[*key == 'r'] = value;
		return 0;
	}
	for (int direction = 0; dot && direction < 2; direction++)
		if (strlen(direction_name[direction]) == (size_t)(dot - key) &&
		    !strncmp(key, direction_name[direction], dot - key))
			return read_entry(key, value, dot + 1, request, direction);
	return complain(BAD_REQUEST, "request: %s is no word of a request", key);
}

/* All headers have the same length, and the fields and checksums lie in them. */
static int check_headers(struct request *request)
{
	struct layout *layout = &request->layout;

	for (int i = 0; i < 2 * MAX_GROUPS; i++) {
		const struct entry *entry = &request->entry[i / MAX_GROUPS][i % MAX_GROUPS];

		if (entry->bytes && i % MAX_GROUPS >= (int)request->groups)
			return complain(BAD_REQUEST, "request: a header is of group %d, and there are %u", i % MAX_GROUPS + 1,
					request->groups);
		if (!entry->bytes && i % MAX_GROUPS < (int)request->groups && request->directions[i / MAX_GROUPS] &&
		    request->part != COUNT && request->part != RETURN && request->part != EXCHANGE)
			return complain(BAD_REQUEST, "request: there is no header %s of group %d", direction_name[i / MAX_GROUPS],
					i % MAX_GROUPS + 1);
		if (entry->bytes && layout->bytes && entry->bytes != layout->bytes)
			return complain(BAD_REQUEST, "request: the headers are not of the same length");
		if (entry->bytes)
			layout->bytes = entry->bytes;
	}
	if (!layout->bytes)
		layout->bytes = MIN_HEADER; /* it only counts */
	for (unsigned int i = 0; i < layout->fields; i++)
		if (layout->field[i].offset + 2u > layout->bytes)
			return complain(BAD_REQUEST, "request: a field is not in the header");
	for (unsigned int i = 0; i < layout->checksums; i++)
		if (layout->checksum[i].offset + 2 > layout->bytes || request->covered[i].to > layout->bytes)
			return complain(BAD_REQUEST, "request: a checksum is not in the header");
	for (unsigned int i = 0; i < request->sizes; i++)
		if (request->size[i] < layout->bytes + HEAD_BYTES + FCS_BYTES)
			return complain(BAD_REQUEST, "request: frames with these headers have %u bytes or more, with FCS",
					layout->bytes + HEAD_BYTES + FCS_BYTES);
	return 0;
}

int request_parse(char *line, struct request *request)
{
	const char *known[MOST_WORDS];
	unsigned int words = 0;
	char *rest = NULL;
	int both;

	*request = (struct request){ .duration = -1, .load = -1, .settle = 0.05, .learning = 60, .directions = { 1, 0 }, .flows = 1,
				     .groups = 1, .train = 1, .sizes = 1, .size = { 64 }, .largest = 64,
				     .values = { { 0, 1 }, { 0, 1 } } };
	for (char *word = strtok_r(line, " \t\r\n", &rest); word; word = strtok_r(NULL, " \t\r\n", &rest)) {
		char *value = strchr(word, '=');

		if (!value)
			return complain(BAD_REQUEST, "request: `%s` is not KEY=VALUE", word);
		*value++ = '\0';
		for (unsigned int i = 0; i < words; i++)
			if (!strcmp(known[i], word))
				return complain(BAD_REQUEST, "request: %s is there twice", word);
		if (words == MOST_WORDS)
			return complain(BAD_REQUEST, "request: there are more than %d words", MOST_WORDS);
		known[words++] = word;
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
	if (request->train > 1 && !request->load)
		return complain(BAD_REQUEST, "request: a train needs a load");
	both = request->directions[0] && request->directions[1];
	if (request->part != WHOLE && (request->burst || !request->trial || both != (request->part == EXCHANGE)))
		return complain(BAD_REQUEST, "request: a part needs a trial and one direction, an exchange both, and no closed loop");
	if (!request->burst != !request->windows || (request->burst && request->load))
		return complain(BAD_REQUEST, "request: a closed loop needs burst and windows, and load=0");
	if (!request->mtu)
		request->mtu = request->largest - ETHERNET_BYTES;
	return check_headers(request);
}

/* The values of all flows. Pseudo-random order is the same in each trial (RFC 4814 section 4). */
static void fill_values(uint32_t *value, const struct request *request)
{
	uint32_t state = 0x4814;

	for (unsigned int flow = 0; flow < request->flows; flow++) {
		unsigned int first = request->values[0].first + flow % request->values[0].count;
		unsigned int second = request->values[1].first + flow / request->values[0].count % request->values[1].count;

		value[flow] = htons(first) | (uint32_t)htons(second) << 16;
	}
	for (unsigned int flow = request->flows - 1; request->random && flow > 0; flow--) {
		uint32_t kept = value[flow];
		unsigned int other;

		state = state * 1664525 + 1013904223;
		other = (uint64_t)state * (flow + 1) >> 32;
		value[flow] = value[other];
		value[other] = kept;
	}
}

struct header header_make(const struct request *request, const struct entry *entry)
{
	struct header made = { .written = ((1u << request->layout.fields) - 1) & ~entry->fixed };
	uint16_t word;

	memcpy(made.words, entry->header, entry->bytes);
	for (unsigned int i = 0; i < request->layout.checksums; i++) {
		made.sum[i] = htons(request->covered[i].constant);
		for (unsigned int at = request->covered[i].from; at < request->covered[i].to; at += 2) {
			memcpy(&word, entry->header + at, 2);
			made.sum[i] += word;
		}
	}
	return made;
}

/* Write what is the same in all frames of this plan: the fields of the flow, those of the length, the checksums. */
static void complete(const struct layout *layout, struct header *header, const struct plan *plan, uint32_t values)
{
	uint32_t flow = (1u << layout->flow_fields) - 1, all = header->written;

	if (plan->flows == 1)
		header->written &= ~flow;
	if (plan->sizes == 1)
		header->written &= flow;
	write_fields(layout, header->words, all & ~header->written, values, plan->length[0], header->sum);
	write_checksums(layout, header->words, header->sum, 0, 0);
}

static struct pace pace_make(double load, unsigned int train)
{
	long double gap = 1e9L / load, at_once = train > 8 ? 2 * train * gap : fminl(16 * gap, MOST_AT_ONCE_NS);

	return (struct pace){ .gap = llroundl(gap * (1 << FRACTION_BITS)) * train, .allowance = fmaxl(at_once, 20000),
			      .spacing = gap * 15 / 16 * train, .least = gap * 3 / 4 * train };
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
		stream->change = stream->count;
		stream->pace.allowance = stream->late_after = UINT64_MAX;
		return;
	}
	stream->pace = stream->next_pace = pace_make(request->load, request->train);
	if (first)
		stream->pace = pace_make(request->overload, request->train);
	stream->train = request->train - 1;
	stream->count = first + llround(request->load * request->duration);
	if (request->frames)
		stream->count = request->frames;
	if (!stream->count)
		stream->count = 1;
	stream->change = first ? first : stream->count;
	stream->due = both ? stream->pace.gap / request->train / 2 : 0;
	stream->late_after = LATE_NS;
}

void plan_make(struct plan *plan, uint32_t *values, const struct request *request, uint16_t trial)
{
	double grace = request->load ? fmax(request->duration / 200, 0.002) : 0; /* to make up for a stall near the end */

	plan->start = 0;
	plan->stop = (request->overload_duration + request->duration + grace) * 1e9;
	plan->failures = 0;
	plan->calls_left = 0;
	plan->burst = request->burst;
	plan->warm_up = request->warm_up;
	plan->flows = request->flows;
	plan->groups = request->groups;
	plan->uniform = request->flows == 1 && request->sizes == 1 && !request->burst;
	plan->sizes = request->sizes;
	plan->largest = request->largest - FCS_BYTES;
	plan->trial = trial;
	for (unsigned int i = 0; i < request->sizes; i++)
		plan->length[i] = request->size[i] - FCS_BYTES;
	fill_values(values, request);
	for (int direction = 0; direction < 2; direction++) {
		struct stream *stream = &plan->stream[direction];

		memset(stream, 0, sizeof(*stream));
		stream->due = FINISHED;
		for (unsigned int group = 0; group < request->groups; group++) {
			stream->header[group] = header_make(request, &request->entry[direction][group]);
			complete(&request->layout, &stream->header[group], plan, values[0]);
		}
		if (!request->directions[direction])
			continue;
		stream->due = 0;
		stream_pace(stream, request, direction && request->directions[!direction]);
	}
}
