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
static struct counters counters;
static struct arrivals arrivals;

/* Prepare a trial; 0, or -1 with `complaint`. */
int begin(const char *line, int trial)
{
	struct port ports[2] = { { .mac = { 2, 0, 0, 0, 0, 1 } }, { .mac = { 2, 0, 0, 0, 0, 2 } } };
	struct request request;
	char words[4096];

	snprintf(words, sizeof(words), "%s", line);
	if (request_parse(words, &request))
		return -1;
	plan_make(&plan, &request, ports, trial);
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

	if (due < 0)
		return plan_finished(&plan) ? -1 : 0;
	*direction = due;
	length = next_length(&plan, &plan.stream[due]);
	return write_frame(&plan, &plan.stream[due], due, frame, frame + length, length, now) ? -2 : length;
}

/* The number of frames that a sender gives to the kernel at once. */
int batch_after(unsigned long long took, unsigned int frames)
{
	return next_batch(took, frames);
}

int receive_at(unsigned long long now, unsigned char *frame, int length, int direction)
{
	const struct running running = { plan.trial, plan.groups };

	return account(frame, frame + length, direction, &running, now, &counters, &arrivals);
}

/* received, duplicated, reordered, corrupted, stray, latency sum, min, max */
void counted(unsigned long long *numbers)
{
	memcpy(numbers, &counters, 8 * sizeof(*numbers));
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

/* sent, late */
void sent(int direction, unsigned long long *numbers)
{
	numbers[0] = plan.stream[direction].sent;
	numbers[1] = plan.stream[direction].late;
}

unsigned int index_of(unsigned long long value)
{
	return histogram_index(value);
}
