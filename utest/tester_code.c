/* The tester's own arithmetic, made callable from Python: what the BPF programs and the packet rings run, unchanged. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "request.c"

const char *const direction_name[2] = { "left-to-right", "right-to-left" };
char complaint[512];
enum complaint_kind complaint_kind;

int complain(enum complaint_kind kind, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(complaint, sizeof(complaint), format, arguments);
	va_end(arguments);
	complaint_kind = kind;
	return -1;
}

static struct plan plan;
static struct request request;
static uint32_t values[MAX_FLOWS];
static struct counters counters;
static struct arrivals arrivals;

/* Prepare a trial; 0, or -1 with `complaint`. */
int begin(const char *line, int trial)
{
	char words[16384];

	snprintf(words, sizeof(words), "%s", line);
	if (request_parse(words, &request))
		return -1;
	plan_make(&plan, values, &request, trial);
	memset(&arrivals, 0, sizeof(arrivals));
	memset(&counters, 0, sizeof(counters));
	counters.latency_min = ~0ULL;
	arrivals.highest = HIGHEST_AT_START;
	return 0;
}

/* Give the sender a moment: the length of the frame that it writes, 0 when nothing is due, -1 when it has finished. */
int send_at(unsigned long long now, unsigned char *frame, int *direction)
{
	int due = next_stream(&plan, now), length;
	struct stream *stream = &plan.stream[due & 1];

	if (due < 0)
		return plan_finished(&plan) ? -1 : 0;
	*direction = due;
	length = next_length(&plan, stream);
	if (write_frame(&plan, &request.layout, values, stream, due, frame, frame + MAX_LENGTH, length, now, plan.uniform))
		return -2;
	note_time(stream, now);
	next_frame(&plan, stream);
	frame_leaves(stream);
	return length;
}

/* Which frames of an unpaced trial with so many frames have a latency that counts: a byte for each. */
void timed(unsigned int count, unsigned char *frames)
{
	struct stream stream = { .count = count };

	for (; stream.sent < count; stream.sent++) {
		if (stream.sent == stream.next_timed)
			begin_or_end_run(&stream, stream.sent + 1);
		frames[stream.sent] = stream.stamp != 0;
	}
}

/* The number of frames that a sender gives to the kernel at once. */
int batch_after(unsigned long long took, unsigned int frames)
{
	return next_batch(took, frames);
}

int receive_at(unsigned long long now, unsigned char *frame, int length, int direction)
{
	const struct running running = { plan.trial, plan.groups, request.layout.bytes };
	__u64 sent_at;
	int ours = account(frame, frame + length, direction, &running, &counters, &arrivals, &sent_at);

	if (sent_at)
		account_latency(&counters, sent_at, now);
	return ours;
}

/* received, duplicated, reordered, corrupted, stray, latency sum, min, max, negative */
void counted(unsigned long long *numbers)
{
	memcpy(numbers, &counters, 9 * sizeof(*numbers));
}

/* received frames of each group */
void counted_by_group(unsigned long long *numbers)
{
	memcpy(numbers, counters.group, sizeof(counters.group));
}

/* The number of the last lost frame, or -1. */
long long last_lost_of(int direction)
{
	unsigned long long last = last_lost(&arrivals, plan.stream[direction].sent);

	return last == NONE_LOST ? -1 : (long long)last;
}

/* sent, late, hurried in ns */
void sent(int direction, unsigned long long *numbers)
{
	numbers[0] = plan.stream[direction].sent;
	numbers[1] = plan.stream[direction].late;
	numbers[2] = plan.stream[direction].hurried;
}

/* The first bytes of the first received frame. */
void first_arrived(unsigned char *bytes)
{
	memcpy(bytes, counters.arrived, sizeof(counters.arrived));
}

unsigned int index_of(unsigned long long value)
{
	return histogram_index(value);
}
