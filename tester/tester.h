/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the front: ports, requests, engines. */
#ifndef PODPERF_TESTER_H
#define PODPERF_TESTER_H

#include <net/if.h>
#include <stdint.h>

#include "accounting.h"
#include "plan.h"

#define VERSION "3"
#define LEFT 0
#define RIGHT 1

extern const char *const port_name[2];
extern const char *const direction_name[2];

/* One clear sentence about an error. Every function that fails writes it. */
enum complaint_kind { BAD_REQUEST, BROKEN, NO_BPF };
extern char complaint[512];
extern enum complaint_kind complaint_kind;
int complain(enum complaint_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3))); /* always -1 */

extern volatile int stopping; /* set by SIGTERM and SIGINT */

/* ports */
struct port {
	const char *name; /* left or right */
	char interface[IF_NAMESIZE];
	char namespace[256]; /* name under /run/netns, or a path, or empty: the front's own */
	int namespace_fd;    /* -1: the front's own */
	int control;         /* a socket in the port's namespace */
	unsigned int ifindex;
	unsigned char mac[6];
	char driver[32];
	const char *mode; /* how the engine uses the port: native, generic, packet-ring */
	int absent;       /* another process, with which this one shares its trials, has the port */
};

int port_open(struct port *port, const char *name, const char *specification);
int port_enter(const struct port *port); /* make the port's namespace the current one */
int port_leave(const struct port *port); /* and go back */
int port_ready(const struct port *port, unsigned int mtu); /* is it up, and has it this MTU or more? */
int port_is_veth(const struct port *port);
int port_is_nic(const struct port *port); /* no: a frame belongs to the system under test at once */
extern int ports_joined;                  /* there is no system under test */
unsigned int port_receive_queues(const struct port *port); /* 0: the driver does not tell */

/* Events of a port since it was made. */
struct port_events {
	uint64_t missed;     /* frames that did not fit into the NIC's receive ring */
	uint32_t links_lost; /* number of times that the carrier was lost */
};

int port_events(const struct port *port, struct port_events *events);
int port_tso(const struct port *port);            /* is TCP segmentation offload on? */
int port_set_tso(const struct port *port, int on);
int port_discard(const struct port *port, unsigned int udp_port); /* let the kernel drop what comes to this UDP port */

/* requests */
struct entry { /* the header of the frames of one group of flows */
	unsigned int bytes; /* 0: the request has none */
	uint32_t fixed;     /* bits of the fields that do not change */
	unsigned char header[MAX_HEADER];
};

/*
 * The part of this process in a trial. In a trial of two processes, one process sends, and the other one counts. For round
 * trips, one process sends and counts the frames that come back, and the other one returns each frame. In an exchange,
 * both send, and each counts the frames of the other one.
 */
enum part { WHOLE, SEND, COUNT, ROUND_TRIP, RETURN, EXCHANGE };

struct request {
	double load; /* frames/s and direction; 0: as fast as possible */
	double duration, settle;
	double learning; /* s between the learning frames of a port */
	double at;       /* s since the epoch: no frame leaves before; 0: at once */
	double overload, overload_duration; /* frames/s and s of what goes before `load`; 0: nothing */
	unsigned int frames;         /* to send in each direction; 0: as many as go into the duration */
	unsigned int train;          /* frames that are due together; 1: each by itself */
	unsigned int burst, windows; /* of a closed loop: frames in a burst, and windows to measure; 0: none */
	unsigned int warm_up;        /* frames of a closed loop before the first window */
	int directions[2];
	enum part part;
	unsigned int trial; /* its number, which all frames carry; 0: the process chooses it */
	unsigned int flows, groups, sizes;
	uint16_t size[MAX_SIZES];            /* with FCS */
	unsigned int largest;                /* of the sizes */
	unsigned int mtu;                    /* that the ports need; 0: as for the largest frame without tags */
	struct entry entry[2][MAX_GROUPS];   /* by direction */
	struct layout layout;
	struct { unsigned int from, to, constant; } covered[MAX_CHECKSUMS]; /* by each checksum */
	struct { unsigned int first, count; } values[2]; /* of the flows: `count` consecutive ones */
	char *own[2]; /* by port: the addresses for which it answers; null: as before */
	int random; /* the flows have their values in pseudo-random order */
};

int request_parse(char *line, struct request *request);
struct header header_make(const struct request *request, const struct entry *entry);
void plan_make(struct plan *plan, uint32_t *values, const struct request *request, uint16_t trial);

/* learning frames: from both ports, to switches on the path */
int learning_open(const struct port ports[2]);
int learning_begin(struct plan *plan, const uint32_t *values, const struct request *request,
		   const struct port ports[2]); /* before a trial */
void learning_end(void);

/* neighbours: answers to routers that ask for the MACs of the tester's addresses */
#define MAX_OWN 4 /* ranges of addresses of a port */

int neighbours_open(const struct port ports[2], int listen); /* listen: the engine takes no messages from the ports */
void neighbours_take(int port, const void *frame, unsigned int length, unsigned int tag); /* a message for it, or none */
int neighbours_set(char *own[2]);           /* the own addresses of the ports */
int neighbours_ask(const char *line, void (*listen)(int milliseconds)); /* for the MAC of an address */
void neighbours_begin(void);                /* a trial begins */
unsigned int neighbours_seen(void);         /* messages in the trial, which no engine counts as test frames */
void neighbours_print(void);                /* the questions since the last call for which the tester has no answer */

/* engines */
struct outcome {
	struct counters counters[2]; /* by direction */
	uint64_t last_lost[2];       /* by direction: the number of the frame, or NONE_LOST */
	uint64_t own_drops;
	char own_drops_reason[256];
	uint64_t windows[MAX_WINDOWS]; /* ns of each window of a closed loop */
	unsigned int early;            /* bursts of a closed loop that began before the previous one had arrived */
	char unready[512]; /* why a port was not ready in the trial; empty: both were ready all the time */
};

struct engine {
	const char *name;
	int (*open)(struct port ports[2]);
	/* The memory for the plan of a trial, and for the values of its flows. Null if this engine cannot send its frames. */
	struct plan *(*plan)(const struct request *request, uint32_t **values);
	int (*run)(const struct request *request, struct outcome *); /* send, wait, count */
	/* Receive until a line comes on standard input, at most so long in ms. Null: the ports have other readers. */
	void (*listen)(int milliseconds);
	void (*close)(void); /* undo changes that the kernel does not undo by itself */
};

extern const struct engine xdp_engine, packet_ring_engine;

uint64_t clock_ns(int clock);
void counters_reset(struct counters *counters);
void counters_add(struct counters *total, const struct counters *more);

/*
 * Wait until all sent frames came back, or no frame came for the settle time. `arrived` gives the number of frames of a
 * direction so far.
 */
void wait_for_arrivals(const struct plan *plan, const struct request *request, uint64_t (*arrived)(int direction));

#endif
