// SPDX-License-Identifier: Apache-2.0
#include "tester.h"
static int no_open(struct port ports[2]) { return complain(BROKEN, "not built"); }
const struct engine packet_ring_engine = { "packet-ring", no_open, 0, 0 };
