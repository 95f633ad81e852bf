// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's plug-in with a QEMU that only does what it is told, line by line on standard input:
 *
 *     block ADDRESS CODE...    translate a block of these instructions (hexadecimal); blocks have numbers from 0
 *     run NUMBER               execute a block
 *     load NUMBER ADDRESS SIZE access memory in this block; the address is hexadecimal, the size a power of two. Or `store`
 *
 * The first argument is the file that the plug-in writes. A second one is a further option of the plug-in.
 */
#include "executions.c"

struct qemu_plugin_insn {
	unsigned char code[16];
	size_t length;
	qemu_plugin_vcpu_udata_cb_t when_run;
	qemu_plugin_vcpu_mem_cb_t when_accessed[2];
	uint64_t address;
	void *data;
};

struct qemu_plugin_tb {
	uint64_t address;
	size_t length;
	struct qemu_plugin_insn instructions[16];
	qemu_plugin_vcpu_udata_cb_t when_run, when_not;
	uint64_t only_if, only_if_not;
	void *data;
};

static uint64_t scoreboard;
static qemu_plugin_vcpu_tb_trans_cb_t when_translated;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb)
{
	when_translated = cb;
}

void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb, qemu_plugin_vcpu_udata_cb_t cb,
					       enum qemu_plugin_cb_flags flags, enum qemu_plugin_cond cond,
					       qemu_plugin_u64 entry, uint64_t imm, void *userdata)
{
	tb->data = userdata;
	if (cond == QEMU_PLUGIN_COND_EQ) {
		tb->when_run = cb;
		tb->only_if = imm;
	} else if (cond == QEMU_PLUGIN_COND_NE) {
		tb->when_not = cb;
		tb->only_if_not = imm;
	} else {
		abort();
	}
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t cb,
					    enum qemu_plugin_cb_flags flags, void *userdata)
{
	insn->when_run = cb;
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_mem_cb_t cb,
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw, void *userdata)
{
	if (rw != QEMU_PLUGIN_MEM_RW)
		abort();
	insn->when_accessed[insn->when_accessed[0] != NULL] = cb;
	insn->data = userdata;
}

#define STORE 0x100u /* beside the logarithm of the size */

unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info)
{
	return info & ~STORE;
}

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info)
{
	return info & STORE;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	return tb->length;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
	return tb->address;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index)
{
	return (struct qemu_plugin_insn *)&tb->instructions[index];
}

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length)
{
	memcpy(to, insn->code, insn->length < length ? insn->length : length);
	return insn->length;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return insn->address;
}

char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *insn)
{
	char *words = malloc(32);

	snprintf(words, 32, "%zu bytes, %02x", insn->length, insn->code[0]);
	return words;
}

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size)
{
	return (struct qemu_plugin_scoreboard *)&scoreboard;
}

void qemu_plugin_u64_set(qemu_plugin_u64 entry, unsigned int vcpu_index, uint64_t value)
{
	scoreboard = value;
}

static void read_block(struct qemu_plugin_tb *tb)
{
	char *word = strtok(NULL, " \n");
	uint64_t next = strtoull(word, NULL, 16);

	tb->address = next;
	while ((word = strtok(NULL, " \n"))) {
		struct qemu_plugin_insn *instruction = &tb->instructions[tb->length++];

		instruction->address = next;
		next += strlen(word) / 2;
		for (; word[0] && word[1]; word += 2)
			sscanf(word, "%2hhx", &instruction->code[instruction->length++]);
	}
}

static void run_block(const struct qemu_plugin_tb *tb)
{
	if (scoreboard == tb->only_if)
		tb->when_run(0, tb->data);
	if (tb->when_not && scoreboard != tb->only_if_not)
		tb->when_not(0, tb->data);
	for (size_t i = 0; i < tb->length; i++)
		if (tb->instructions[i].when_run)
			tb->instructions[i].when_run(0, NULL);
}

static void access_memory(const struct qemu_plugin_tb *tb, qemu_plugin_meminfo_t kind)
{
	uint64_t address = strtoull(strtok(NULL, " \n"), NULL, 16);
	int size = atoi(strtok(NULL, " \n"));

	const struct qemu_plugin_insn *instruction = &tb->instructions[0];

	for (size_t i = 0; i < 2 && instruction->when_accessed[i]; i++)
		instruction->when_accessed[i](0, kind | (unsigned int)__builtin_ctz(size), address, instruction->data);
}

int main(int argc, char **argv)
{
	static struct qemu_plugin_tb blocks[64];
	char line[4096], to[1024];
	size_t length = 0;

	snprintf(to, sizeof(to), "out=%s", argv[1]);
	if (qemu_plugin_install(0, NULL, argc > 2 ? 2 : 1, (char *[]){ to, argv[2] }))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		const char *what = strtok(line, " \n");
		const struct qemu_plugin_tb *tb;

		if (!strcmp(what, "block")) {
			read_block(&blocks[length]);
			when_translated(0, &blocks[length++]);
			continue;
		}
		tb = &blocks[atoi(strtok(NULL, " \n"))];
		if (!strcmp(what, "run"))
			run_block(tb);
		else
			access_memory(tb, strcmp(what, "store") ? 0 : STORE);
	}
	return 0;
}
