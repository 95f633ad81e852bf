// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plug-in for QEMU: how often each block of instructions runs in each window of a closed loop, and its use of memory.
 *
 *     qemu-system-x86_64 ... -plugin executions.so,out=FILE[,detail=on]    detail.h says what the detail is
 *     qemu-system-x86_64 -machine none -plugin executions.so,probe=on      says that it could be loaded, and ends
 *
 * Marks in the tester's code (marks.h) tell where a loop, its windows and its bursts begin and end. At the end of each
 * loop FILE is written anew, with two kinds of lines:
 *
 *     window NUMBER
 *     ADDRESS INSTRUCTIONS EXECUTIONS LOADS STORES LINES MISSES
 *
 * The second is of a block that ran in that window; the address is hexadecimal. LINES are the cache lines that this block
 * was the first to touch in a burst. MISSES are those of a model of a level 1 data cache: LINES_OF_CACHE lines in one
 * set, of which the one that was used longest ago is replaced. It has no sets of fewer lines, because the addresses of
 * the kernel's objects decide which of them share a set, and these addresses differ from boot to boot. The cache is empty
 * when the first window begins. Addresses are virtual.
 *
 * A block of the guest's program that ends before its last instruction, by a fault, counts as a whole. The machine has
 * one CPU.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"
#include "qemu_plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;
QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv);

#define LINE_BYTES 64
#define LINES_OF_CACHE 512

enum { IN_WINDOW = 1, IN_LOOP };

struct counts { /* of a block in a window */
	uint64_t executions, loads, stores, lines, misses;
};

struct block {
	uint64_t address;
	size_t instructions;
	struct counts counts; /* in this window */
	char *code;	      /* with detail=on: its instructions in words */
	uint64_t in_loop;     /* the number of the last loop that it ran in a window of */
	struct block *next_of_bucket;
};

struct count { /* of a window that has ended */
	unsigned int window;
	const struct block *block;
	struct counts counts;
};

struct line { /* of memory that was touched in this loop */
	uint64_t number, burst; /* its address / LINE_BYTES, and the last burst that touched it */
	struct line *next_of_bucket;
	struct line *newer, *older; /* in the cache, a ring by the last use; NULL outside of it */
};

#define BUCKETS (1u << 18)
#define LINE_BUCKETS (1u << 12) /* few, so that the host's cache has them */
#define HASH(key) ((key) * 0x9e3779b97f4a7c15u >> 32)
#define MOST_COUNTS (1u << 21) /* in a loop; what runs in the guest may mark windows without end */
#define MOST_LINES (1u << 17)  /* in a loop; the guest may touch all of its memory */
static struct block *buckets[BUCKETS];

static struct block **ran; /* the blocks that ran in this window */
static size_t ran_length, ran_room;
static struct count *counts;
static size_t counts_length, counts_room;
static unsigned int windows; /* that have begun in this loop */
static int in_loop;
static uint64_t loops; /* that have begun */
static qemu_plugin_u64 counting; /* IN_WINDOW, IN_LOOP outside of a window, or 0 */
static int in_window;

static struct line lines[MOST_LINES], *line_buckets[LINE_BUCKETS];
static size_t lines_length, lines_in_cache;
static struct line cache;  /* the newest line is older than this one, and the oldest line is newer */
static uint64_t burst = 1; /* the number of this one */

static const char *out;

static void *with_room_for_one_more(void *array, size_t length, size_t *room, size_t element)
{
	if (length < *room)
		return array;
	*room = *room ? 2 * *room : 4096;
	array = realloc(array, *room * element);
	if (!array)
		abort();
	return array;
}

/* The guest translates the same code again and again. So a block is known by its place and length, and never freed. */
static struct block *block_at(uint64_t address, size_t instructions)
{
	struct block **place = &buckets[HASH(address + instructions) % BUCKETS], *block;

	for (block = *place; block; block = block->next_of_bucket)
		if (block->address == address && block->instructions == instructions)
			return block;
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	block->address = address;
	block->instructions = instructions;
	block->next_of_bucket = *place;
	return *place = block;
}

static void on_block(unsigned int cpu, void *data)
{
	struct block *block = data;

	if (block->counts.executions++)
		return;
	block->in_loop = loops;
	ran = with_room_for_one_more(ran, ran_length, &ran_room, sizeof(*ran));
	ran[ran_length++] = block;
}

/* No file is better than a file with a part of the counts. */
static void give_up(unsigned int cpu)
{
	in_loop = in_window = 0;
	qemu_plugin_u64_set(counting, cpu, 0);
}

#include "detail.h"

static struct line *line_at(uint64_t number)
{
	struct line **place = &line_buckets[HASH(number) % LINE_BUCKETS], *line;

	for (line = *place; line; line = line->next_of_bucket)
		if (line->number == number)
			return line;
	if (lines_length == MOST_LINES)
		return NULL;
	line = &lines[lines_length++];
	*line = (struct line){ .number = number, .next_of_bucket = *place };
	return *place = line;
}

static void leave_cache(struct line *line)
{
	line->newer->older = line->older;
	line->older->newer = line->newer;
	line->newer = NULL;
}

/* The line is the newest of the cache now. Says whether the cache did not have it. */
static int missed(struct line *line)
{
	int misses = !line->newer;

	if (!misses)
		leave_cache(line);
	else if (lines_in_cache == LINES_OF_CACHE)
		leave_cache(cache.newer);
	else
		lines_in_cache++;
	line->newer = &cache;
	line->older = cache.older;
	line->older->newer = line;
	cache.older = line;
	return misses;
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t access, uint64_t address, void *data)
{
	struct counts *counts;
	uint64_t last;

	if (!in_window)
		return;
	counts = &((struct block *)data)->counts;
	if (qemu_plugin_mem_is_store(access))
		counts->stores++;
	else
		counts->loads++;
	last = (address + (1u << qemu_plugin_mem_size_shift(access)) - 1) / LINE_BYTES;
	for (uint64_t number = address / LINE_BYTES; number <= last; number++) {
		struct line *line = cache.older->number == number ? cache.older : line_at(number);

		if (!line) {
			give_up(cpu);
			return;
		}
		counts->lines += line->burst != burst;
		line->burst = burst;
		if (line != cache.older)
			counts->misses += missed(line);
	}
}

static void forget_lines(void)
{
	memset(line_buckets, 0, sizeof(line_buckets));
	lines_length = lines_in_cache = 0;
	cache = (struct line){ .number = UINT64_MAX, .newer = &cache, .older = &cache };
}

static void end_window(int keep)
{
	for (size_t i = 0; i < ran_length; i++) {
		struct block *block = ran[i];

		if (keep && counts_length == MOST_COUNTS)
			in_loop = 0;
		else if (keep) {
			counts = with_room_for_one_more(counts, counts_length, &counts_room, sizeof(*counts));
			counts[counts_length++] = (struct count){ windows - 1, block, block->counts };
		}
		block->counts = (struct counts){ 0 };
	}
	ran_length = 0;
	if (detail)
		end_window_in_detail(keep && in_loop);
}

static void on_loop_begin(unsigned int cpu, void *data)
{
	give_up(cpu);
	end_window(0);
	forget_lines();
	counts_length = windows = 0;
	in_loop = 1;
	loops++;
	if (detail) {
		forget_detail();
		qemu_plugin_u64_set(counting, cpu, IN_LOOP);
	}
	remove(out); /* so that nobody takes the counts of an earlier loop for those of this one */
}

static void on_window_begin(unsigned int cpu, void *data)
{
	if (!in_loop)
		return;
	if (windows)
		end_window(1);
	if (!in_loop) {
		give_up(cpu);
		return;
	}
	windows++;
	in_window = 1;
	qemu_plugin_u64_set(counting, cpu, IN_WINDOW);
}

static void on_burst_begin(unsigned int cpu, void *data)
{
	burst++;
}

static void on_loop_end(unsigned int cpu, void *data)
{
	FILE *file = in_loop ? fopen(out, "w") : NULL;
	unsigned int window = 0;

	give_up(cpu);
	end_window(0); /* it is no whole one */
	for (size_t i = 0; file && i < counts_length; i++) {
		const struct counts *each = &counts[i].counts;

		if (!i || counts[i].window != window)
			fprintf(file, "window %u\n", window = counts[i].window);
		fprintf(file, "%" PRIx64 " %zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			counts[i].block->address, counts[i].block->instructions, each->executions, each->loads,
			each->stores, each->lines, each->misses);
	}
	if (file && detail)
		write_detail(file);
	if (file && fclose(file))
		remove(out);
}

/* What to do at this instruction, or NULL. */
static qemu_plugin_vcpu_udata_cb_t mark_at(const struct qemu_plugin_insn *instruction)
{
	unsigned char code[16];
	size_t length = qemu_plugin_insn_data(instruction, code, sizeof(code));
	uint64_t begins;
	uint32_t loop;

	if (length == 7 && !memcmp(code, "\x0f\x1f\x80", 3)) {
		memcpy(&loop, code + 3, sizeof(loop));
		return loop == LOOP_BEGINS ? on_loop_begin : loop == LOOP_ENDS ? on_loop_end : NULL;
	}
	if (length == 10 && (code[0] & 0xfe) == 0x48 && (code[1] & 0xf8) == 0xb8) { /* movabs, to any register */
		memcpy(&begins, code + 2, sizeof(begins));
		return begins == WINDOW_BEGINS ? on_window_begin : begins == BURST_BEGINS ? on_burst_begin : NULL;
	}
	return NULL;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t instructions = qemu_plugin_tb_n_insns(tb);
	struct block *block = block_at(qemu_plugin_tb_vaddr(tb), instructions);
	int of_kernel = (int64_t)qemu_plugin_tb_vaddr(tb) < 0; /* the upper half of the addresses of x86-64 */

	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_COND_EQ, counting, IN_WINDOW,
						  block);
	if (detail) {
		keep_code(block, tb);
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_block_in_detail, QEMU_PLUGIN_CB_NO_REGS,
							  QEMU_PLUGIN_COND_NE, counting, 0, block);
	}
	for (size_t i = 0; i < instructions; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		qemu_plugin_vcpu_udata_cb_t mark = mark_at(instruction);
		qemu_plugin_vcpu_mem_cb_t call = detail ? call_or_return(instruction) : NULL;

		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (of_kernel)
			qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
							 block);
		if (call)
			qemu_plugin_register_vcpu_mem_cb(instruction, call, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, block);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
		detail |= !strcmp(argv[i], "detail=on");
		if (!strcmp(argv[i], "probe=on")) {
			puts("podperf: this QEMU takes the plug-in");
			fflush(stdout);
			_Exit(0);
		}
	}
	if (!out) {
		fputs("executions.so: out=FILE is missing\n", stderr);
		return -1;
	}
	if (detail && !(places = calloc(MOST_PLACES, sizeof(*places))))
		return -1;
	counting = (qemu_plugin_u64){ qemu_plugin_scoreboard_new(sizeof(uint64_t)), 0 };
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
