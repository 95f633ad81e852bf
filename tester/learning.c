// SPDX-License-Identifier: Apache-2.0
/*
 * Learning frames teach the switches on the path at which of their ports a MAC is. A switch floods a frame to a MAC that
 * it does not know, and in a trial of one direction the receiving port would send nothing.
 *
 * Each port sends one learning frame for each group of flows before a trial, and again every 60 s while it runs, because
 * switches forget a MAC after 300 s. A learning frame is the smallest test frame of its direction, with the trial number
 * 0. So routers and pods forward it, and the switches behind them learn their MACs, too. No receiver counts it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "tester.h"

#define ON_THE_WAY_NS 1000000 /* until a learning frame has crossed most switches */

static struct side {
	int sender; /* a packet socket; -1: the port is another process's */
	unsigned int number;
	unsigned int length;
	unsigned char frames[MAX_GROUPS][MAX_HEADER + HEAD_BYTES];
} sides[2] = { { .sender = -1 }, { .sender = -1 } };

static timer_t timer;

/* Also called by a signal. Returns 0 or an errno. */
static int send_frames(const struct side *side)
{
	int error = 0;

	for (unsigned int i = 0; i < side->number; i++)
		if (send(side->sender, side->frames[i], side->length, MSG_DONTWAIT) < 0 && errno != ENOBUFS && errno != EAGAIN)
			error = errno;
	return error;
}

static void on_timer(int signal)
{
	int error = errno;

	send_frames(&sides[LEFT]);
	send_frames(&sides[RIGHT]);
	errno = error;
}

static int open_side(struct side *side, const struct port *port)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)port->ifindex };

	if (port_enter(port))
		return -1;
	side->sender = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (side->sender < 0 || bind(side->sender, (struct sockaddr *)&address, sizeof(address))) {
		complain(BROKEN, "port %s: no packet socket on %s for learning frames (root, or CAP_NET_RAW): %s", port->name,
			 port->interface, strerror(errno));
		port_leave(port);
		return -1;
	}
	return port_leave(port);
}

int learning_open(const struct port ports[2])
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		return complain(BROKEN, "cannot make a timer: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		if (!ports[i].absent && open_side(&sides[i], &ports[i]))
			return -1;
	return 0;
}

/* The frames of a port. None if the request has no header of its direction: its destination is not known here. */
static int make_frames(struct plan *plan, const uint32_t *values, const struct request *request, int direction)
{
	struct side *side = &sides[direction];
	struct stream stream = plan->stream[direction];
	uint32_t trial = plan->trial;
	int bad = 0;

	side->number = 0;
	if (side->sender < 0 || !request->entry[direction][0].bytes)
		return 0;
	stream.flow = stream.group = 0;
	plan->trial = LEARNING;
	side->length = request->layout.bytes + HEAD_BYTES;
	for (; side->number < request->groups && !bad; side->number++) {
		unsigned char *frame = side->frames[side->number];

		stream.header[side->number] = header_make(request, &request->entry[direction][side->number]);
		bad = write_frame(plan, &request->layout, values, &stream, direction, frame, frame + side->length, side->length,
				  clock_ns(CLOCK_MONOTONIC), 0);
		next_frame(plan, &stream);
	}
	plan->trial = trial;
	return bad ? complain(BROKEN, "cannot build a learning frame") : 0;
}

static void set_timer(double seconds)
{
	struct timespec wait = { (time_t)seconds, (seconds - (time_t)seconds) * 1e9 };
	struct itimerspec every = { .it_interval = wait, .it_value = wait };

	timer_settime(timer, 0, &every, NULL);
}

int learning_begin(struct plan *plan, const uint32_t *values, const struct request *request, const struct port ports[2])
{
	const struct timespec on_the_way = { .tv_nsec = ON_THE_WAY_NS };
	int error;

	for (int i = 0; i < 2; i++) {
		if (make_frames(plan, values, request, i))
			return -1;
		error = send_frames(&sides[i]);
		if (error)
			return complain(BROKEN, "port %s: sending on %s: %s", ports[i].name, ports[i].interface, strerror(error));
	}
	nanosleep(&on_the_way, NULL);
	set_timer(request->learning);
	return 0;
}

void learning_end(void)
{
	set_timer(0);
}
