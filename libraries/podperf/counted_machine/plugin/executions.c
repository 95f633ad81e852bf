// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plug-in for QEMU: how often each block of instructions runs in each window of a closed loop.
 *
 *     qemu-system-x86_64 ... -plugin executions.so,out=FILE
 *     qemu-system-x86_64 -machine none -plugin executions.so,probe=on      says that it could be loaded, and ends
 *
 * Marks in the tester's code (marks.h) tell where a loop and its windows begin and end. At the end of each loop FILE is
 * written anew, with two kinds of lines:
 *
 *     window NUMBER
 *     ADDRESS INSTRUCTIONS EXECUTIONS        of a block that ran in that window; the address is hexadecimal
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

struct block {
	uint64_t address, executions; /* executions in this window */
	size_t instructions;
	struct block *next_of_bucket;
};

struct count { /* of a window that has ended */
	unsigned int window;
	uint64_t address, executions;
	size_t instructions;
};

#define BUCKETS (1u << 18)
#define MOST_COUNTS (1u << 21) /* in a loop; what runs in the guest may mark windows without end */
static struct block *buckets[BUCKETS];

static struct block **ran; /* the blocks that ran in this window */
static size_t ran_length, ran_room;
static struct count *counts;
static size_t counts_length, counts_room;
static unsigned int windows; /* that have begun in this loop */
static int in_loop;
static qemu_plugin_u64 counting; /* 1 in a window */
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
	struct block **place = &buckets[(address * 0x9e3779b97f4a7c15u + instructions) >> 46], *block;

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

	if (block->executions++)
		return;
	ran = with_room_for_one_more(ran, ran_length, &ran_room, sizeof(*ran));
	ran[ran_length++] = block;
}

static void end_window(int keep)
{
	for (size_t i = 0; i < ran_length; i++) {
		struct block *block = ran[i];

		if (keep && counts_length == MOST_COUNTS)
			in_loop = 0; /* so that no file has a part of the counts */
		else if (keep) {
			counts = with_room_for_one_more(counts, counts_length, &counts_room, sizeof(*counts));
			counts[counts_length++] = (struct count){ .window = windows - 1,
								  .address = block->address,
								  .executions = block->executions,
								  .instructions = block->instructions };
		}
		block->executions = 0;
	}
	ran_length = 0;
}

static void on_loop_begin(unsigned int cpu, void *data)
{
	end_window(0);
	qemu_plugin_u64_set(counting, cpu, 0);
	counts_length = windows = 0;
	in_loop = 1;
	remove(out); /* so that nobody takes the counts of an earlier loop for those of this one */
}

static void on_window_begin(unsigned int cpu, void *data)
{
	if (!in_loop)
		return;
	if (windows)
		end_window(1);
	if (!in_loop) {
		qemu_plugin_u64_set(counting, cpu, 0);
		return;
	}
	windows++;
	qemu_plugin_u64_set(counting, cpu, 1);
}

static void on_loop_end(unsigned int cpu, void *data)
{
	FILE *file = in_loop ? fopen(out, "w") : NULL;
	unsigned int window = 0;

	qemu_plugin_u64_set(counting, cpu, 0);
	in_loop = 0;
	end_window(0); /* it is no whole one */
	for (size_t i = 0; file && i < counts_length; i++) {
		if (!i || counts[i].window != window)
			fprintf(file, "window %u\n", window = counts[i].window);
		fprintf(file, "%" PRIx64 " %zu %" PRIu64 "\n", counts[i].address, counts[i].instructions,
			counts[i].executions);
	}
	if (file && fclose(file))
		remove(out);
}

/* What to do at this instruction, or NULL. */
static qemu_plugin_vcpu_udata_cb_t mark_at(const struct qemu_plugin_insn *instruction)
{
	unsigned char code[16];
	size_t length = qemu_plugin_insn_data(instruction, code, sizeof(code));
	uint64_t window;
	uint32_t loop;

	if (length == 7 && !memcmp(code, "\x0f\x1f\x80", 3)) {
		memcpy(&loop, code + 3, sizeof(loop));
		return loop == LOOP_BEGINS ? on_loop_begin : loop == LOOP_ENDS ? on_loop_end : NULL;
	}
	if (length == 10 && (code[0] & 0xfe) == 0x48 && (code[1] & 0xf8) == 0xb8) { /* movabs, to any register */
		memcpy(&window, code + 2, sizeof(window));
		return window == WINDOW_BEGINS ? on_window_begin : NULL;
	}
	return NULL;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t instructions = qemu_plugin_tb_n_insns(tb);
	struct block *block = block_at(qemu_plugin_tb_vaddr(tb), instructions);

	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_COND_EQ, counting, 1,
						  block);
	for (size_t i = 0; i < instructions; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		qemu_plugin_vcpu_udata_cb_t mark = mark_at(instruction);

		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
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
	counting = (qemu_plugin_u64){ qemu_plugin_scoreboard_new(sizeof(uint64_t)), 0 };
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
