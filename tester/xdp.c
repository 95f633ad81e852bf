// SPDX-License-Identifier: Apache-2.0
/*
 * The fast engine: one XDP program sends through BPF_PROG_TEST_RUN with live frames, another one counts on both ports.
 * BPF links attach the programs, so the kernel detaches them when this process ends for any reason.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "marks.h"
#include "tester.h"

#define MAX_LIVE_FRAME 3412 /* bytes with FCS: the kernel builds a live frame in one page */

#define EMBED(symbol, file)                                                                                            \
	__asm__(".section .rodata\n.balign 8\n" #symbol ":\n.incbin \"" file "\"\n" #symbol "_end:\n.previous\n");      \
	extern const char symbol[], symbol##_end[]

EMBED(sender_object, "sender.bpf.o");
EMBED(sink_object, "sink.bpf.o");

static struct plan *plan;
static struct refusals *refusals; /* by port */
static struct counters *counters; /* [CPU][direction] */
static struct arrivals *arrivals; /* by direction */
static struct stamp *stamps;     /* by burst of a closed loop */
static struct running *running;
static uint32_t *flow_values;
static int cpus;
static struct bpf_object *sender;
static struct layout sent_layout; /* of the sender's frames */
static int send_frames, send_unpaced;
static int sink_program[2], sink_link[2]; /* by port */
static const struct port *on_ports;
static int arrive_here; /* most frames of the last trial arrived on the CPU that sent them */
static int one_cpu;     /* see struct running */
static int counters_map;

static int silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return 0;
}

static struct bpf_object *read_object(const char *start, const char *end, const char *name)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);
	struct bpf_object *object = bpf_object__open_mem(start, end - start, &options);

	if (!object)
		complain(NO_BPF, "cannot read the BPF program %s: %s", name, strerror(errno));
	return object;
}

static int load(struct bpf_object *object)
{
	int error = bpf_object__load(object);

	if (!error)
		return 0;
	if (error == -EPERM || error == -EACCES)
		return complain(NO_BPF, "loading BPF programs is not permitted: it needs root, or CAP_BPF, CAP_NET_ADMIN and "
					"CAP_PERFMON");
	return complain(NO_BPF, "the kernel does not take the BPF program %s: %s", bpf_object__name(object), strerror(-error));
}

/* The memory of a map, or of a section of global variables, which is a map, too. */
static void *shared(struct bpf_object *object, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	size_t page = sysconf(_SC_PAGESIZE), size = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *memory = mmap(NULL, (size + page - 1) / page * page, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (memory == MAP_FAILED) {
		complain(NO_BPF, "cannot map the BPF map %s: %s", name, strerror(errno));
		return NULL;
	}
	return memory;
}

static int attach(int fd, struct port *port, int *attached)
{
	int link;
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);

	port->mode = "native";
	link = bpf_link_create(fd, port->ifindex, BPF_XDP, &options);
	if (link == -EOPNOTSUPP || link == -EINVAL || link == -ERANGE) {
		options.flags = XDP_FLAGS_SKB_MODE;
		port->mode = "generic";
		link = bpf_link_create(fd, port->ifindex, BPF_XDP, &options);
	}
	if (link == -EBUSY || link == -EEXIST)
		return complain(BROKEN, "port %s: another XDP program sits on %s; take it off: ip link set %s xdp off",
				port->name, port->interface, port->interface);
	if (link < 0)
		return complain(NO_BPF, "port %s: cannot attach XDP to %s: %s", port->name, port->interface, strerror(-link));
	*attached = link;
	return 0;
}

static int take_port(struct port *port, uint32_t index)
{
	int map = bpf_object__find_map_fd_by_name(sender, "port_map");

	if (bpf_map_update_elem(map, &index, &port->ifindex, BPF_ANY))
		return complain(NO_BPF, "port %s: frames cannot be redirected to %s: %s", port->name, port->interface,
				strerror(errno));
	return attach(sink_program[index], port, &sink_link[index]);
}

/* One call of the sender program until the timer's signal or the end of all repeats. 0 or -errno. */
static int call_sender(int program, uint32_t repeat, uint32_t batch)
{
	static char frame[MAX_LENGTH];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = plan->largest, .repeat = (int)repeat,
		    .batch_size = batch, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	return bpf_prog_test_run_opts(program, &options) ? -errno : 0;
}

static int watch_refusals(const struct port ports[2])
{
	struct bpf_program *full_rings = bpf_object__find_program_by_name(sender, "count_full_rings");
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);
	int map = bpf_object__find_map_fd_by_name(sender, "port_map");

	if (bpf_obj_get_info_by_fd(map, &info, &length))
		return complain(NO_BPF, "cannot ask for the id of a BPF map: %s", strerror(errno));
	for (int i = 0; i < 2; i++) {
		refusals[i].map_id = info.id;
		refusals[i].nic = port_is_nic(&ports[i]) ? ports[i].ifindex : 0;
		refusals[i].joined = ports_joined ? ports[i].ifindex : 0;
	}
	if (!bpf_program__attach(bpf_object__find_program_by_name(sender, "count_refusals")))
		return complain(NO_BPF, "cannot attach to the tracepoint xdp_redirect_err: %s", strerror(errno));
	if (bpf_program__autoload(full_rings) && !bpf_program__attach(full_rings))
		return complain(NO_BPF, "cannot attach to the tracepoint xdp_devmap_xmit: %s", strerror(errno));
	return 0;
}

/*
 * Load the sender's programs for frames with these headers. The kernel's verifier and compiler then know all offsets.
 * Programs for other headers go, and their maps stay.
 */
static int load_sender(const struct layout *layout)
{
	static const char *const maps[] = { "port_map", "counters_map", ".bss.plan", ".bss.values", ".bss.stamps", ".bss.refusals" };
	struct bpf_object *object = read_object(sender_object, sender_object_end, "sender"), *previous = sender;

	if (!object || bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata"), layout, sizeof(*layout)))
		return complain(NO_BPF, "cannot read the BPF program sender");
	for (unsigned int i = 0; previous && i < sizeof(maps) / sizeof(maps[0]); i++)
		if (bpf_map__reuse_fd(bpf_object__find_map_by_name(object, maps[i]),
				      bpf_object__find_map_fd_by_name(previous, maps[i])))
			return complain(NO_BPF, "cannot share a BPF map: %s", strerror(errno));
	/* Few ports need this program. It needs a kernel with type information (BTF), and costs time with every batch. */
	bpf_program__set_autoload(bpf_object__find_program_by_name(object, "count_full_rings"),
				  !previous && (port_is_nic(&on_ports[LEFT]) || port_is_nic(&on_ports[RIGHT]) || ports_joined));
	/* Both tracepoint programs stay attached, because their links stay. */
	bpf_program__set_autoload(bpf_object__find_program_by_name(object, "count_refusals"), !previous);
	if (!previous && bpf_map__reuse_fd(bpf_object__find_map_by_name(object, "counters_map"), counters_map))
		return complain(NO_BPF, "cannot share a BPF map: %s", strerror(errno));
	if (load(object))
		return -1;
	sender = object;
	sent_layout = *layout;
	send_frames = bpf_program__fd(bpf_object__find_program_by_name(sender, "send_frames"));
	send_unpaced = bpf_program__fd(bpf_object__find_program_by_name(sender, "send_unpaced"));
	bpf_object__close(previous);
	return 0;
}

static int xdp_open(struct port ports[2])
{
	static const struct layout smallest = { .bytes = MIN_HEADER };
	struct bpf_object *sink;

	libbpf_set_print(silent);
	cpus = libbpf_num_possible_cpus();
	on_ports = ports;
	one_cpu = 1;
	sink = read_object(sink_object, sink_object_end, "sink");
	if (!sink)
		return -1;
	bpf_map__set_max_entries(bpf_object__find_map_by_name(sink, "counters_map"), 2 * cpus);
	if (load(sink))
		return -1;
	counters_map = bpf_map__fd(bpf_object__find_map_by_name(sink, "counters_map"));
	if (load_sender(&smallest))
		return -1;
	plan = shared(sender, ".bss.plan");
	flow_values = shared(sender, ".bss.values");
	refusals = shared(sender, ".bss.refusals");
	stamps = shared(sender, ".bss.stamps");
	counters = shared(sink, "counters_map");
	arrivals = shared(sink, ".bss.arrivals");
	running = shared(sink, ".bss.running");
	if (!plan || !flow_values || !stamps || !refusals || !counters || !arrivals || !running || watch_refusals(ports))
		return -1;
	sink_program[LEFT] = bpf_program__fd(bpf_object__find_program_by_name(sink, "sink_left"));
	sink_program[RIGHT] = bpf_program__fd(bpf_object__find_program_by_name(sink, "sink_right"));

	plan->stream[0].due = plan->stream[1].due = FINISHED;
	plan->largest = MIN_FRAME_BYTES - FCS_BYTES;
	if (call_sender(send_frames, 1, 1) && errno != EINTR)
		return complain(NO_BPF, "this kernel sends no live frames (BPF_PROG_TEST_RUN, Linux 5.18 or newer): %s",
				strerror(errno));
	for (uint32_t index = 0; index < 2; index++) {
		int failed;

		if (port_enter(&ports[index]))
			return -1;
		failed = take_port(&ports[index], index);
		if (port_leave(&ports[index]) || failed)
			return -1;
		one_cpu = one_cpu && !strcmp(ports[index].mode, "native") && port_receive_queues(&ports[index]) == 1;
	}
	return 0;
}

static struct plan *xdp_plan(const struct request *request, uint32_t **values)
{
	if (request->largest > MAX_LIVE_FRAME) {
		complain(BAD_REQUEST, "request: the engine xdp sends frames of at most %d bytes; tester.settings.engine: packet-ring "
				      "sends larger ones", MAX_LIVE_FRAME);
		return NULL;
	}
	if (memcmp(&request->layout, &sent_layout, sizeof(sent_layout)) && load_sender(&request->layout))
		return NULL;
	*values = flow_values;
	return plan;
}

static uint64_t arrived(int direction)
{
	uint64_t sum = 0;

	for (int cpu = 0; cpu < cpus; cpu++) {
		volatile struct counters *each = &counters[2 * cpu + direction];

		sum += each->received + each->corrupted;
	}
	return sum;
}

static void set_timer(double first, double then)
{
	struct itimerval timer = { .it_value = { (long)first, (first - (long)first) * 1e6 },
				   .it_interval = { (long)then, (then - (long)then) * 1e6 } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/*
 * The number of calls of the program after which the kernel hands its frames over. Most calls find no frame due, and
 * take 0.15 us. At low load a frame must not wait. At high load each hand-over to another CPU costs a wake-up of the
 * receiver, so a frame may wait, for 10 us at most. On the sender's own CPU the receiver runs at once, and a frame waits
 * for a quarter of this time. A frame's wait is part of its latency.
 */
static uint32_t batch_size(const struct request *request)
{
	double calls = request->load * (request->directions[0] + request->directions[1]) / 16000;
	double most = arrive_here ? 16 : 64;

	if (request->burst)
		return request->burst;
	if (request->train > 1)
		return request->train;
	if (request->load == 0)
		return 64; /* a multiple of RUN */
	return calls < 1 ? 1 : calls > most ? most : calls;
}

static const char *refusal_remedy(int error)
{
	switch (error) {
	case EOPNOTSUPP: return "its peer takes no XDP frames: ethtool -K PEER gro on";
	case ENETDOWN: return "it is down";
	case ENOBUFS: return "the receive ring of the other port was full";
	case EMSGSIZE: return "the frame is larger than its MTU";
	case ENXIO: return "it is gone, or its peer takes no XDP frames: ethtool -K PEER gro on";
	default: return strerror(error);
	}
}

static void count_own_drops(struct outcome *outcome)
{
	for (int port = 0; port < 2; port++) {
		if (!refusals[port].count)
			continue;
		outcome->own_drops += refusals[port].count;
		snprintf(outcome->own_drops_reason, sizeof(outcome->own_drops_reason), "the kernel refused to send from %s: %s",
			 on_ports[port].interface, refusal_remedy(refusals[port].error));
	}
}

/* The kernel hands a burst over at its end. On one CPU, the burst then crosses the SUT before the sender goes on. */
static void tell_windows(const struct request *request, struct outcome *outcome)
{
	unsigned int bursts = WINDOW / request->burst; /* in a window */

	outcome->early = 0;
	for (unsigned int burst = 0; burst <= bursts * request->windows; burst++)
		outcome->early += stamps[burst].arrived != request->warm_up + (uint64_t)burst * request->burst;
	for (unsigned int window = 0; window < request->windows; window++)
		outcome->windows[window] = stamps[(window + 1) * bursts].time - stamps[window * bursts].time;
}

/*
 * The kernel searches an XDP program among all programs in use. The number of steps depends on the number of programs
 * and on their addresses. In a closed loop of one direction the sending port receives nothing. So it gets the other
 * port's program, and one program less is in use.
 */
static int place_sinks(const struct request *request)
{
	static int placed[2] = { LEFT, RIGHT };

	for (int port = 0; port < 2; port++) {
		/* The direction with this number starts at the port with this number. */
		int wanted = request->burst && !request->directions[!port] ? !port : port;

		if (placed[port] == wanted)
			continue;
		if (bpf_link_update(sink_link[port], sink_program[wanted], NULL))
			return complain(BROKEN, "cannot change the XDP program of a port: %s", strerror(errno));
		placed[port] = wanted;
	}
	return 0;
}

/* `nopl VALUE(%rax)`, see marks.h. */
#ifdef __x86_64__
#define MARK(value) asm volatile(".byte 0x0f, 0x1f, 0x80\n.long %c0" : : "i"(value) : "memory")
#else
#define MARK(value) do { } while (0)
#endif

static int send_all(const struct request *request)
{
	int error = 0, program = request->load || request->burst ? send_frames : send_unpaced;
	double limit = plan->stop / 1e9;
	uint32_t batch = batch_size(request);

	/* The program ends the call by a signal. On a kernel where this fails, the timer ends it. */
	set_timer(limit + 0.5, 0.05);
	plan->calls_left = batch;
	if (request->burst)
		MARK(LOOP_BEGINS);
	while (!plan_finished(plan) && !stopping && (!error || error == -EINTR))
		error = call_sender(program, UINT32_MAX, batch);
	if (request->burst)
		MARK(LOOP_ENDS);
	set_timer(0, 0);
	for (int i = 0; i < 2; i++)
		estimate_last(&plan->stream[i]);
	return error;
}

static void note_cpu(void)
{
	const struct counters *here = &counters[2 * sched_getcpu()];

	arrive_here = 2 * (here[0].received + here[1].received) > arrived(0) + arrived(1);
}

static int xdp_run(const struct request *request, struct outcome *outcome)
{
	int error;

	if (request->part != WHOLE)
		return complain(BAD_REQUEST, "request: the engine xdp has both ports of a trial");
	*running = (struct running){ plan->trial, plan->groups, request->layout.bytes, one_cpu };
	for (int i = 0; i < 2 * cpus; i++)
		counters_reset(&counters[i]);
	for (int i = 0; i < 2; i++) {
		arrivals[i].highest = HIGHEST_AT_START;
		arrivals[i].skipped = 0;
		refusals[i].count = refusals[i].unsent = 0;
	}

	if (place_sinks(request))
		return -1;
	error = send_all(request);
	if (error && error != -EINTR)
		return complain(BROKEN, "the kernel ended the sending: %s", strerror(-error));
	if (plan->failures)
		return complain(BROKEN, "the sender could not build %llu frames", (unsigned long long)plan->failures);

	for (int port = 0; port < 2; port++) /* the direction with this number starts at the port with this number */
		plan->stream[port].sent -= refusals[port].unsent;
	wait_for_arrivals(plan, request, arrived);
	for (int i = 0; i < 2 * cpus; i++)
		counters_add(&outcome->counters[i % 2], &counters[i]);
	note_cpu();
	for (int i = 0; i < 2; i++)
		outcome->last_lost[i] = last_lost(&arrivals[i], plan->stream[i].sent);
	count_own_drops(outcome);
	if (request->burst)
		tell_windows(request, outcome);
	return 0;
}

static void xdp_close(void)
{
	/* Programs, links and maps go with the process. */
}

const struct engine xdp_engine = { "xdp", xdp_open, xdp_plan, xdp_run, NULL, xdp_close };
