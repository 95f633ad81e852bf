// SPDX-License-Identifier: Apache-2.0
/* A tester port: an interface, perhaps in a network namespace of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

#include "tester.h"

static int own_namespace = -1;

int port_enter(const struct port *port)
{
	if (port->namespace_fd >= 0 && setns(port->namespace_fd, CLONE_NEWNET))
		return complain(BROKEN, "cannot enter the network namespace %s of port %s: %s", port->namespace, port->name,
				strerror(errno));
	return 0;
}

int port_leave(const struct port *port)
{
	if (port->namespace_fd >= 0 && setns(own_namespace, CLONE_NEWNET))
		return complain(BROKEN, "cannot leave the network namespace %s: %s", port->namespace, strerror(errno));
	return 0;
}

static int ask(const struct port *port, unsigned long what, struct ifreq *answer)
{
	strncpy(answer->ifr_name, port->interface, IF_NAMESIZE);
	if (!ioctl(port->control, what, answer))
		return 0;
	return complain(BROKEN, "port %s: interface %s%s%s: %s", port->name, port->interface,
			port->namespace[0] ? " in namespace " : "", port->namespace, strerror(errno));
}

static int read_facts(struct port *port)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq answer = { 0 };

	port->control = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (port->control < 0)
		return complain(BROKEN, "cannot make a socket: %s", strerror(errno));
	if (ask(port, SIOCGIFINDEX, &answer))
		return complain(BROKEN, "port %s: there is no interface %s%s%s", port->name, port->interface,
				port->namespace[0] ? " in namespace " : "", port->namespace);
	port->ifindex = answer.ifr_ifindex;
	if (ask(port, SIOCGIFHWADDR, &answer))
		return -1;
	memcpy(port->mac, answer.ifr_hwaddr.sa_data, sizeof(port->mac));
	answer.ifr_data = (void *)&driver;
	if (!ask(port, SIOCETHTOOL, &answer))
		snprintf(port->driver, sizeof(port->driver), "%.31s", driver.driver);
	else
		strcpy(port->driver, "unknown");
	return 0;
}

/* `specification` is INTERFACE or INTERFACE@NAMESPACE. */
int port_open(struct port *port, const char *name, const char *specification)
{
	const char *at = strchr(specification, '@');
	size_t length = at ? (size_t)(at - specification) : strlen(specification);
	char path[300];

	*port = (struct port){ .name = name, .namespace_fd = -1, .mode = "none" };
	if (!length || length >= IF_NAMESIZE)
		return complain(BROKEN, "port %s: `%s` is not INTERFACE or INTERFACE@NAMESPACE", name, specification);
	memcpy(port->interface, specification, length);
	if (own_namespace < 0)
		own_namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (at) {
		snprintf(port->namespace, sizeof(port->namespace), "%s", at + 1);
		snprintf(path, sizeof(path), "%s%s", strchr(at, '/') ? "" : "/run/netns/", port->namespace);
		port->namespace_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (port->namespace_fd < 0)
			return complain(BROKEN, "port %s: there is no network namespace %s", name, port->namespace);
	}
	if (port_enter(port))
		return -1;
	int bad = read_facts(port);
	return port_leave(port) || bad ? -1 : 0;
}

int port_ready(const struct port *port, unsigned int mtu)
{
	/* ethtool's link state, because IFF_RUNNING follows the carrier up to a second late */
	struct ethtool_value carrier = { .cmd = ETHTOOL_GLINK };
	struct ifreq answer = { 0 };
	int up;

	if (ask(port, SIOCGIFFLAGS, &answer))
		return -1;
	up = answer.ifr_flags & IFF_UP;
	answer.ifr_data = (void *)&carrier;
	if (ask(port, SIOCETHTOOL, &answer))
		carrier.data = 1; /* a driver that cannot tell */
	if (!up || !carrier.data)
		return complain(BROKEN, "port %s: %s is down or has no carrier; set it and its peer up", port->name,
				port->interface);
	if (ask(port, SIOCGIFMTU, &answer))
		return -1;
	if ((int)mtu > answer.ifr_mtu)
		return complain(BROKEN, "port %s: the frames need an MTU of %u, %s has %d", port->name, mtu, port->interface,
				answer.ifr_mtu);
	return 0;
}

int port_is_veth(const struct port *port)
{
	return !strcmp(port->driver, "veth");
}

/* A veth or a tap passes frames on at once. If a frame finds no room there, the system under test has lost it. */
int port_is_nic(const struct port *port)
{
	return !port_is_veth(port) && strcmp(port->driver, "tun");
}

unsigned int port_receive_queues(const struct port *port)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq answer = { .ifr_data = (void *)&channels };

	return ask(port, SIOCETHTOOL, &answer) ? 0 : channels.rx_count + channels.combined_count;
}

int port_events(const struct port *port, struct port_events *events)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
	} question = { { .nlmsg_len = sizeof(question), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST },
		       { .ifi_index = port->ifindex } };
	union {
		struct nlmsghdr header;
		char bytes[32768];
	} answer;
	struct rtnl_link_stats64 statistics = { 0 };
	int left;

	if (send(port->control, &question, sizeof(question), 0) < 0 ||
	    recv(port->control, &answer, sizeof(answer), 0) < 0 || answer.header.nlmsg_type != RTM_NEWLINK)
		return complain(BROKEN, "port %s: cannot read the counters of %s", port->name, port->interface);
	left = IFLA_PAYLOAD(&answer.header);
	for (struct rtattr *each = IFLA_RTA(NLMSG_DATA(&answer.header)); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
		if (each->rta_type == IFLA_CARRIER_DOWN_COUNT)
			memcpy(&events->links_lost, RTA_DATA(each), sizeof(events->links_lost));
		else if (each->rta_type == IFLA_STATS64) /* an older kernel has fewer counters */
			memcpy(&statistics, RTA_DATA(each), MIN(RTA_PAYLOAD(each), sizeof(statistics)));
	}
	events->missed = port_is_nic(port) ? statistics.rx_missed_errors : 0;
	return 0;
}

int port_tso(const struct port *port)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GTSO };
	struct ifreq answer = { .ifr_data = (void *)&value };

	return !ask(port, SIOCETHTOOL, &answer) && value.data;
}

int port_set_tso(const struct port *port, int on)
{
	struct ethtool_value value = { .cmd = ETHTOOL_STSO, .data = on };
	struct ifreq answer = { .ifr_data = (void *)&value };

	return ask(port, SIOCETHTOOL, &answer);
}

/* Frames for a UDP port without a socket cost the kernel an ICMP answer. This socket drops them by a filter. */
int port_discard(const struct port *port, unsigned int udp_port)
{
	struct sockaddr_in6 both = { .sin6_family = AF_INET6, .sin6_port = htons(udp_port) };
	struct sockaddr_in ipv4 = { .sin_family = AF_INET, .sin_port = htons(udp_port) };
	struct sock_filter none = { .code = BPF_RET | BPF_K, .k = 0 };
	struct sock_fprog filter = { .len = 1, .filter = &none };
	int discarding, bad, off = 0;

	if (port_enter(port))
		return -1;
	discarding = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (discarding >= 0) {
		bad = setsockopt(discarding, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
		      setsockopt(discarding, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
		      bind(discarding, (struct sockaddr *)&both, sizeof(both));
	} else { /* a kernel without IPv6 */
		discarding = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		bad = discarding < 0 || setsockopt(discarding, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
		      bind(discarding, (struct sockaddr *)&ipv4, sizeof(ipv4));
	}
	if (bad)
		complain(BROKEN, "port %s: cannot discard what comes to UDP port %u: %s", port->name, udp_port, strerror(errno));
	return port_leave(port) || bad ? -1 : 0;
}
