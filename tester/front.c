// SPDX-License-Identifier: Apache-2.0
/*
 * podperf-tester: sends test frames on two ports and counts the frames that come back.
 *
 *     podperf-tester --left IF[@NETNS] --right IF[@NETNS] [--engine xdp|packet-ring] [--cpu N] [--discard N]
 *                   [--any-address] [--joined]
 *
 * It prints {"ready": ...} or {"error": ...}. Then it answers each request line on standard input (see request.c) with
 * a line {"trial": ...} or {"error": ...}, and the request for a MAC (see neighbours.c) with {"neighbour": ...}. It ends
 * at the end of standard input, or by SIGTERM.
 *
 * With one port only, another process has the other one, for example in another pod. The engine is packet-ring then.
 * --discard N lets the kernel drop what arrives for UDP port N, so that it does not answer that nobody listens there.
 * With --joined, the ports are plugged into each other: the tester itself loses the frames that find no room in the other
 * port's receive ring.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tester.h"

#define TYPE_OFFSET 12    /* of the ethertype in a frame */

const char *const port_name[2] = { "left", "right" };
const char *const direction_name[2] = { "left-to-right", "right-to-left" };

char complaint[512];
enum complaint_kind complaint_kind;
volatile int stopping;
int ports_joined;

int complain(enum complaint_kind kind, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(complaint, sizeof(complaint), format, arguments);
	va_end(arguments);
	complaint_kind = kind;
	return -1;
}

uint64_t clock_ns(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/*
 * The CPU time of all that runs on this machine, in nanoseconds since an unknown moment: the time of all its CPUs, less
 * that in which they were idle or another machine had them. In a container, the kernel tells it of the whole machine.
 * -1: the kernel does not tell.
 */
static int machine_busy(uint64_t *busy)
{
	unsigned long long idle = 0, waiting = 0, stolen = 0;
	FILE *statistics = fopen("/proc/stat", "r");
	uint64_t cpus = 0;
	char line[512];
	int known = 0;

	if (!statistics)
		return -1;
	while (fgets(line, sizeof(line), statistics) && !strncmp(line, "cpu", 3)) {
		if (line[3] == ' ')
			known = sscanf(line, "cpu %*u %*u %*u %llu %llu %*u %*u %llu", &idle, &waiting, &stolen) == 3;
		else
			cpus++;
	}
	fclose(statistics);
	*busy = cpus * clock_ns(CLOCK_MONOTONIC) - (idle + waiting + stolen) * (1000000000ULL / sysconf(_SC_CLK_TCK));
	return known ? 0 : -1;
}

/* Tells two machines apart, if both processes of a trial look at their machine. */
static void print_machine(uint64_t busy)
{
	char boot[64] = "";
	FILE *id = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (!id)
		return;
	if (fscanf(id, "%63s", boot) == 1)
		printf(",\"machine_busy_ns\":%lld,\"boot_id\":\"%s\"", (long long)busy, boot);
	fclose(id);
}

void counters_reset(struct counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	counters->latency_min = UINT64_MAX;
}

void counters_add(struct counters *total, const struct counters *more)
{
	total->received += more->received;
	total->duplicated += more->duplicated;
	total->reordered += more->reordered;
	total->corrupted += more->corrupted;
	total->stray += more->stray;
	total->latency_sum += more->latency_sum;
	total->latency_negative += more->latency_negative;
	if (more->latency_min < total->latency_min)
		total->latency_min = more->latency_min;
	if (more->latency_max > total->latency_max)
		total->latency_max = more->latency_max;
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		total->histogram[i] += more->histogram[i];
	for (int i = 0; i < MAX_GROUPS; i++)
		total->group[i] += more->group[i];
	if (more->received) { /* of any CPU */
		memcpy(total->arrived, more->arrived, sizeof(total->arrived));
		total->tag = more->tag;
	}
}

/* The headers of the first test frame that arrived, in hexadecimal digits. A tag that the kernel took away is there. */
static void print_arrived(const struct counters *counters)
{
	const unsigned char *bytes = (const void *)counters->arrived;

	printf(",\"arrived\":\"");
	for (unsigned int i = 0; i < sizeof(counters->arrived); i++) {
		if (i == TYPE_OFFSET && counters->tag)
			printf("%08x", counters->tag);
		printf("%02x", bytes[i]);
	}
	printf("\"");
}

void wait_for_arrivals(const struct plan *plan, const struct request *request, uint64_t (*arrived)(int direction))
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t settle = request->settle * 1e9, seen = UINT64_MAX, changed = clock_ns(CLOCK_MONOTONIC);

	while (!stopping) {
		uint64_t there[2] = { arrived(0), arrived(1) }, now = clock_ns(CLOCK_MONOTONIC);

		if (there[0] + there[1] != seen) {
			seen = there[0] + there[1];
			changed = now;
		} else if ((there[0] >= plan->stream[0].sent && there[1] >= plan->stream[1].sent) ||
			   now - changed >= settle) {
			return; /* after at least one pause, for copies of the last frames */
		}
		nanosleep(&pause, NULL);
	}
}

static void print_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= ' ')
			putchar(*text);
	}
	putchar('"');
}

static void print_error(void)
{
	static const char *const kinds[] = { "request", "broken", "no-bpf" };

	printf("{\"error\":");
	print_string(complaint);
	printf(",\"kind\":\"%s\"}\n", kinds[complaint_kind]);
	fflush(stdout);
}

static void print_ready(const struct engine *engine, const struct port ports[2])
{
	const char *comma = "";

	printf("{\"ready\":{\"version\":\"%s\",\"engine\":\"%s\",\"ports\":{", VERSION, engine->name);
	for (int i = 0; i < 2; i++) {
		const unsigned char *mac = ports[i].mac;

		if (ports[i].absent)
			continue;
		printf("%s\"%s\":{\"interface\":", comma, ports[i].name);
		comma = ",";
		print_string(ports[i].interface);
		printf(",\"namespace\":");
		print_string(ports[i].namespace);
		printf(",\"driver\":");
		print_string(ports[i].driver);
		printf(",\"mode\":\"%s\",\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\"}", ports[i].mode, mac[0], mac[1], mac[2],
		       mac[3], mac[4], mac[5]);
	}
	printf("}}}\n");
	fflush(stdout);
}

/* The time from the first frame to the last one, plus one gap. So N frames at rate R take N / R. */
static double sending_ns(const struct stream *stream, double load)
{
	double span = stream->last - stream->first;

	if (!stream->sent)
		return 0;
	if (load > 0)
		return span + 1e9 / load;
	return stream->sent > 1 ? span * stream->sent / (stream->sent - 1) : 0;
}

static void print_direction(const struct request *request, const struct stream *stream, const struct outcome *outcome,
			    int direction)
{
	const struct counters *counters = &outcome->counters[direction];
	unsigned long long intended = request->load > 0 || request->frames ? stream->count : stream->sent;
	const char *comma = "";

	printf("{\"direction\":\"%s\",\"intended\":%llu,\"sent\":%llu,\"received\":%llu,\"duplicated\":%llu,"
	       "\"reordered\":%llu,\"corrupted\":%llu,\"duration_ns\":%.0f,\"late\":%llu,\"hurried\":%llu,\"negative_latencies\":%llu",
	       direction_name[direction], intended, stream->sent, counters->received, counters->duplicated,
	       counters->reordered, counters->corrupted, sending_ns(stream, request->load), stream->late,
	       (unsigned long long)(stream->hurried * request->load / 1e9 + 0.5),
	       request->burst ? 0ULL : counters->latency_negative);
	if (counters->received)
		print_arrived(counters);
	for (unsigned int i = 0; request->groups > 1 && i < request->groups; i++)
		printf("%s%llu%s", i ? "," : ",\"received_by_group\":[", counters->group[i], i + 1 < request->groups ? "" : "]");
	if (outcome->last_lost[direction] != NONE_LOST)
		printf(",\"last_lost\":%llu", (unsigned long long)outcome->last_lost[direction]);
	if (counters->latency_min != UINT64_MAX && !request->burst) {
		printf(",\"latency\":{\"min\":%llu,\"sum\":%llu,\"max\":%llu,\"counts\":[", counters->latency_min,
		       counters->latency_sum, counters->latency_max);
		for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
			if (!counters->histogram[i])
				continue;
			printf("%s[%d,%llu]", comma, i, counters->histogram[i]);
			comma = ",";
		}
		printf("]}");
	}
	printf("}");
}

static void print_windows(const struct request *request, const struct outcome *outcome)
{
	printf(",\"early\":%u,\"windows_ns\":[", outcome->early);
	for (unsigned int i = 0; i < request->windows; i++)
		printf("%s%llu", i ? "," : "", (unsigned long long)outcome->windows[i]);
	printf("]");
}

/* Frames that a port's NIC lost on receiving are the tester's loss. A trial is invalid if a link was down. */
static void judge_ports(const struct port ports[2], const struct port_events before[2], unsigned int mtu,
			struct outcome *outcome)
{
	for (int i = 0; i < 2; i++) {
		struct port_events after = before[i];

		if (ports[i].absent)
			continue;
		if (port_ready(&ports[i], mtu) || port_events(&ports[i], &after)) {
			strcpy(outcome->unready, complaint);
			continue;
		}
		if (after.links_lost != before[i].links_lost)
			snprintf(outcome->unready, sizeof(outcome->unready), "port %s: %s lost its link in the trial, and has it again",
				 ports[i].name, ports[i].interface);
		if (after.missed != before[i].missed)
			snprintf(outcome->own_drops_reason, sizeof(outcome->own_drops_reason), "the receive ring of %s was full",
				 ports[i].interface);
		outcome->own_drops += after.missed - before[i].missed;
	}
}

/* Sleep until this moment, in s since the epoch. Returns the ns that passed. */
static uint64_t sleep_until(double moment)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct timespec until = { .tv_sec = moment };

	until.tv_nsec = (moment - until.tv_sec) * 1e9;
	while (!stopping && clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	return clock_ns(CLOCK_MONOTONIC) - began;
}

static int run_trial(const struct engine *engine, const struct port ports[2], char *line)
{
	static struct outcome outcome;
	static uint16_t trial;
	static struct request request;
	struct plan *plan;
	uint32_t *values;
	uint64_t started, began, prepared, computed, busy = 0, busy_after = 0;
	struct port_events events[2] = { 0 };
	const char *comma = "";
	unsigned long long stray, asked;
	int failed, looks;

	if (request_parse(line, &request) || neighbours_set(request.own))
		return -1;
	if (!trial)
		trial = clock_ns(CLOCK_REALTIME) >> 20; /* frames of an earlier process must not look like ours */
	if (!++trial)
		trial = 1;
	if (request.trial)
		trial = request.trial;
	started = clock_ns(CLOCK_REALTIME);
	began = clock_ns(CLOCK_MONOTONIC);
	plan = engine->plan(&request, &values);
	if (!plan)
		return -1;
	plan_make(plan, values, &request, trial);
	for (int i = 0; i < 2; i++)
		if (!ports[i].absent && (port_ready(&ports[i], request.mtu) || port_events(&ports[i], &events[i])))
			return -1;
	memset(&outcome, 0, sizeof(outcome));
	neighbours_begin();
	counters_reset(&outcome.counters[0]);
	counters_reset(&outcome.counters[1]);
	/* In a closed loop, only its own frames may cost instructions. One that only sends is heard by its test frames. */
	if (!request.burst && request.part != SEND && request.part != ROUND_TRIP && learning_begin(plan, values, &request, ports))
		return -1;
	looks = request.train > 1 && (request.part == SEND || request.part == COUNT) && !machine_busy(&busy);
	prepared = clock_ns(CLOCK_MONOTONIC);
	if (request.at) {
		uint64_t slept = sleep_until(request.at); /* this is no part of the trial */

		started = clock_ns(CLOCK_REALTIME) - (prepared - began);
		began += slept;
		prepared += slept;
	}
	computed = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	failed = engine->run(&request, &outcome);
	computed = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - computed;
	looks = looks && !machine_busy(&busy_after);
	learning_end();
	if (failed)
		return -1;
	judge_ports(ports, events, request.mtu, &outcome);
	if (stopping)
		return complain(BROKEN, "stopped in the middle of a trial");

	stray = outcome.counters[0].stray + outcome.counters[1].stray;
	asked = neighbours_seen();
	printf("{\"trial\":{\"started\":%.6f,\"preparation\":%.6f,\"elapsed\":%.6f,\"cpu_ns\":%llu,\"stray\":%llu,\"own_drops\":%llu,\"own_drops_reason\":",
	       started / 1e9, (prepared - began) / 1e9, (clock_ns(CLOCK_MONOTONIC) - began) / 1e9,
	       (unsigned long long)computed, stray > asked ? stray - asked : 0ULL, (unsigned long long)outcome.own_drops);
	print_string(outcome.own_drops_reason);
	printf(",\"unready\":");
	print_string(outcome.unready);
	if (looks)
		print_machine(busy_after - busy);
	neighbours_print();
	printf(",\"directions\":[");
	for (int direction = 0; direction < 2; direction++) {
		if (!request.directions[direction])
			continue;
		printf("%s", comma);
		print_direction(&request, &plan->stream[direction], &outcome, direction);
		comma = ",";
	}
	printf("]");
	if (request.burst)
		print_windows(&request, &outcome);
	printf("}}\n");
	fflush(stdout);
	return 0;
}

static void on_stop(int signal)
{
	stopping = 1;
}

static void on_alarm(int signal)
{
	/* The signal only interrupts the system call that sends. */
}

static void handle_signals(void)
{
	struct sigaction stop = { .sa_handler = on_stop }, alarm = { .sa_handler = on_alarm };

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGALRM, &alarm, NULL);
}

struct arguments {
	const struct engine *engine;
	int cpu;                  /* -1: any */
	unsigned int discard;     /* UDP port; 0: none */
};

static int open_ports(const char *const specification[2], const struct engine *engine, struct port ports[2])
{
	for (int i = 0; i < 2; i++) {
		if (!specification[i] && specification[!i] && engine == &packet_ring_engine) {
			ports[i] = (struct port){ .name = port_name[i], .namespace_fd = -1, .absent = 1 };
			continue;
		}
		if (!specification[i])
			return complain(BROKEN, "--%s INTERFACE is missing", port_name[i]);
		if (port_open(&ports[i], port_name[i], specification[i]))
			return -1;
	}
	return 0;
}

static int read_arguments(int argc, char **argv, struct port ports[2], struct arguments *arguments)
{
	static const struct option options[] = { { "left", required_argument, NULL, 'l' },
						 { "right", required_argument, NULL, 'r' },
						 { "engine", required_argument, NULL, 'e' },
						 { "cpu", required_argument, NULL, 'c' },
						 { "discard", required_argument, NULL, 'd' },
						 { "joined", no_argument, &ports_joined, 1 },
						 { 0 } };
	const char *specification[2] = { NULL, NULL };
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!option) /* a flag */
			continue;
		if (option == 'l')
			specification[LEFT] = optarg;
		else if (option == 'r')
			specification[RIGHT] = optarg;
		else if (option == 'c')
			arguments->cpu = atoi(optarg);
		else if (option == 'd')
			arguments->discard = atoi(optarg);
		else if (option == 'e' && !strcmp(optarg, xdp_engine.name))
			arguments->engine = &xdp_engine;
		else if (option == 'e' && !strcmp(optarg, packet_ring_engine.name))
			arguments->engine = &packet_ring_engine;
		else
			return complain(BROKEN, "cannot use `%s`: --left IF[@NETNS] --right IF[@NETNS] "
					"[--engine xdp|packet-ring] [--cpu N] [--discard N] [--joined]", argv[optind - 1]);
	}
	if (open_ports(specification, arguments->engine, ports))
		return -1;
	for (int i = 0; arguments->discard && i < 2; i++)
		if (!ports[i].absent && port_discard(&ports[i], arguments->discard))
			return -1;
	return 0;
}

/*
 * Gives this process precedence on its CPU. It gets no real-time class, because on a busy machine the kernel stops such
 * a class for 50 ms in every second. If the kernel groups tasks by session, the group has its own nice value.
 */
static void take_precedence(void)
{
	FILE *group;

	setpriority(PRIO_PROCESS, 0, -20);
	if (getsid(0) == getpid() && (group = fopen("/proc/self/autogroup", "w"))) {
		fputs("-20", group);
		fclose(group);
	}
}

static int settle_on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu >= 0) {
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return complain(BROKEN, "cannot run on CPU %d: %s", cpu, strerror(errno));
	}
	return 0;
}

/* Wait for a request. The engine listens meanwhile. Returns 0 if this process is to end. */
static int await_line(const struct engine *engine)
{
	struct pollfd line = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!stopping && engine->listen && poll(&line, 1, 0) <= 0)
		engine->listen(-1);
	return !stopping;
}

int main(int argc, char **argv)
{
	static struct port ports[2];
	struct arguments arguments = { .engine = &xdp_engine, .cpu = -1 };
	const struct engine *engine;
	char *line = NULL;
	size_t size = 0;

	handle_signals();
	if (read_arguments(argc, argv, ports, &arguments) || settle_on_cpu(arguments.cpu)) {
		print_error();
		return 1;
	}
	engine = arguments.engine;
	if (engine->open(ports) || learning_open(ports) || neighbours_open(ports, !engine->listen)) {
		print_error();
		engine->close();
		return 1;
	}
	if (engine->listen)
		setvbuf(stdin, NULL, _IONBF, 0); /* poll() does not see what stdin has read already */
	take_precedence();
	print_ready(engine, ports);
	while (await_line(engine) && getline(&line, &size, stdin) > 0)
		if (!strncmp(line, "ask=", 4) ? neighbours_ask(line, engine->listen) : run_trial(engine, ports, line))
			print_error();
	engine->close();
	return 0;
}
