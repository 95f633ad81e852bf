// SPDX-License-Identifier: Apache-2.0
// podperf-rotation CPU SLICE_US THREAD...: lets threads that poll without a pause take turns on one CPU.
//
// The scheduler's own slices last milliseconds. In this time the ring of a waiting poller overflows. So every thread
// gets real-time priority, and the thread in its turn a higher one. After each ROUND_NS all threads step back for
// FAIR_NS, so that no other task on this CPU starves. Otherwise the kernel would stop the threads for 50 ms in a second
// (real-time throttling). The program prints a line when the turns have begun. It ends at the end of its standard
// input, on SIGTERM, or with the last thread. The threads then have their ordinary priority again. If the kernel gives
// a thread no real-time priority, the line says so, and the program ends at once.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 64, WAITS = 40, RUNS = 41, ROTATES = 42 };
enum { SECOND_NS = 1000 * 1000 * 1000, ROUND_NS = 8500 * 1000, FAIR_NS = 500 * 1000 };

static volatile sig_atomic_t stopped;
static pid_t threads[MOST_THREADS];
static int count;

static void stop(int number)
{
	stopped = 1;
}

static bool set(pid_t thread, int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	return !sched_setscheduler(thread, policy, &param);
}

// Threads that have ended lose their turn.
static void set_all(int policy, int priority)
{
	int left = 0;

	for (int i = 0; i < count; i++)
		if (set(threads[i], policy, priority))
			threads[left++] = threads[i];
	count = left;
}

static void sleep_ns(struct timespec *until, long ns)
{
	until->tv_nsec += ns;
	if (until->tv_nsec >= SECOND_NS) {
		until->tv_nsec -= SECOND_NS;
		until->tv_sec++;
	}
	while (!stopped && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until, NULL) == EINTR)
		;
}

static bool input_ended(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char ignored[64];

	return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0;
}

static void rotate(long slice_ns)
{
	struct timespec now;
	int turn = 0;

	while (!stopped && !input_ended()) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		set_all(SCHED_FIFO, WAITS);
		if (!count)
			return;
		for (long spent = 0; !stopped && spent < ROUND_NS; spent += slice_ns, turn++) {
			set(threads[turn % count], SCHED_FIFO, RUNS);
			sleep_ns(&now, slice_ns);
			set(threads[turn % count], SCHED_FIFO, WAITS);
		}
		set_all(SCHED_OTHER, 0);
		sleep_ns(&now, FAIR_NS);
	}
}

// A kernel that divides real-time between control groups (CONFIG_RT_GROUP_SCHED) gives none to threads of containers.
static bool one_is_refused(void)
{
	for (int i = 0; i < count; i++)
		if (!set(threads[i], SCHED_FIFO, WAITS) && errno == EPERM)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;

	if (argc < 4 || argc - 3 > MOST_THREADS || atoi(argv[2]) < 10) {
		fprintf(stderr, "usage: podperf-rotation CPU SLICE_US THREAD...\n");
		return 2;
	}
	for (; count < argc - 3; count++) {
		threads[count] = atoi(argv[count + 3]);
		setpriority(PRIO_PROCESS, threads[count], 19); // in the pause, all other tasks come first
	}
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || mlockall(MCL_CURRENT) || !set(0, SCHED_FIFO, ROTATES)) {
		perror("podperf-rotation");
		return 1;
	}
	bool refused = one_is_refused();

	puts(refused ? "refused" : "the threads take turns");
	fflush(stdout);
	if (!refused)
		rotate(atoi(argv[2]) * 1000L);
	set_all(SCHED_OTHER, 0);
	for (int i = 0; i < count; i++)
		setpriority(PRIO_PROCESS, threads[i], 0);
	return 0;
}
