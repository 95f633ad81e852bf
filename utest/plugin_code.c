// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's plug-in with a QEMU that only does what it is told, line by line on standard input:
 *
 *     block ADDRESS CODE...    translate a block of these instructions (hexadecimal); blocks have numbers from 0
 *     run NUMBER               execute a block
 *
 * The first argument is the file that the plug-in writes.
 */
#include "executions.c"

struct qemu_plugin_insn {
	unsigned char code[16];
	size_t length;
	qemu_plugin_vcpu_udata_cb_t when_run;
};

struct qemu_plugin_tb {
	uint64_t address;
	size_t length;
	struct qemu_plugin_insn instructions[16];
	qemu_plugin_vcpu_udata_cb_t when_run;
	uint64_t only_if;
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
	if (cond != QEMU_PLUGIN_COND_EQ)
		abort();
	tb->when_run = cb;
	tb->only_if = imm;
	tb->data = userdata;
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t cb,
					    enum qemu_plugin_cb_flags flags, void *userdata)
{
	insn->when_run = cb;
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

	tb->address = strtoull(word, NULL, 16);
	while ((word = strtok(NULL, " \n"))) {
		struct qemu_plugin_insn *instruction = &tb->instructions[tb->length++];

		for (; word[0] && word[1]; word += 2)
			sscanf(word, "%2hhx", &instruction->code[instruction->length++]);
	}
}

static void run_block(const struct qemu_plugin_tb *tb)
{
	if (scoreboard == tb->only_if)
		tb->when_run(0, tb->data);
	for (size_t i = 0; i < tb->length; i++)
		if (tb->instructions[i].when_run)
			tb->instructions[i].when_run(0, NULL);
}

int main(int argc, char **argv)
{
	static struct qemu_plugin_tb blocks[64];
	char line[4096], to[1024];
	size_t length = 0;

	snprintf(to, sizeof(to), "out=%s", argv[1]);
	if (qemu_plugin_install(0, NULL, 1, (char *[]){ to }))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(strtok(line, " \n"), "block")) {
			read_block(&blocks[length]);
			when_translated(0, &blocks[length++]);
		} else {
			run_block(&blocks[atoi(strtok(NULL, " \n"))]);
		}
	}
	return 0;
}
