/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * With the option detail=on, executions.c also writes who calls whom, and the instructions themselves. At the end of FILE
 * there are lines of these forms:
 *
 *     node NUMBER PARENT CALLER ENTRY
 *     code ADDRESS INSTRUCTIONS<tab>ADDRESS TEXT<tab>ADDRESS TEXT...
 *     at WINDOW NODE ADDRESS INSTRUCTIONS EXECUTIONS
 *
 * A node is a function in one stack of calls: the block CALLER, which ran in the node PARENT, called the block ENTRY. The
 * node 0 has no caller. `at` counts the executions of a block in a node. TEXT is an instruction in words; it is empty if
 * this QEMU has no disassembler (capstone).
 *
 * A call stores the address to return to, and a return loads it. The place in memory tells which stack of the guest it
 * belongs to: stacks of the kernel have STACK_BYTES and begin at a multiple of it. So each task and each interrupt has a
 * stack here, too, and a switch of tasks is nothing but a return that loads from another stack. A frame is left when a
 * call or a return uses its place, or one above: stacks grow downwards.
 */
#define STACK_BYTES 16384
#define DEEPEST 256	      /* calls in one stack; deeper ones belong to the deepest */
#define STACKS 1024	      /* the stack of another task may take the place of one */
#define MOST_NODES (1u << 16) /* in a loop */
#define MOST_PLACES (1u << 20)

struct node {
	unsigned int number;
	struct node *parent;
	const struct block *caller, *entry;
	struct node *next_of_bucket;
};

struct frame {
	uint64_t place; /* of the address to return to */
	struct node *node;
};

struct stack {
	uint64_t number; /* its address / STACK_BYTES */
	struct node *base; /* of what runs in no frame */
	size_t depth;
	struct frame frames[DEEPEST];
};

struct place { /* a block in a node */
	const struct node *node;
	const struct block *block;
	uint64_t executions; /* in this window */
	struct place *next_of_bucket;
};

struct place_count { /* in a window that has ended */
	unsigned int window;
	const struct place *place;
	uint64_t executions;
};

static int detail;
static struct node nodes[MOST_NODES], *node_buckets[BUCKETS], *here;
static size_t nodes_length;
static struct stack stacks[STACKS], *stack_now;
static const struct block *calling; /* the block that has called what runs next, or NULL */
static struct place *places, *place_buckets[BUCKETS];
static size_t places_length;
static struct place **ran_places;
static size_t ran_places_length, ran_places_room;
static struct place_count *place_counts;
static size_t place_counts_length, place_counts_room;

/* The node that this call leads to, or NULL if there are too many. */
static struct node *node_of(struct node *parent, const struct block *caller, const struct block *entry)
{
	uint64_t key = (uintptr_t)parent + 3 * (uintptr_t)caller + 7 * (uintptr_t)entry;
	struct node **place = &node_buckets[HASH(key) % BUCKETS], *node;

	for (node = *place; node; node = node->next_of_bucket)
		if (node->parent == parent && node->caller == caller && node->entry == entry)
			return node;
	if (nodes_length == MOST_NODES)
		return NULL;
	node = &nodes[nodes_length];
	*node = (struct node){ nodes_length++, parent, caller, entry, *place };
	return *place = node;
}

static struct place *place_of(const struct node *node, const struct block *block)
{
	struct place **bucket = &place_buckets[HASH((uintptr_t)node + 3 * (uintptr_t)block) % BUCKETS], *place;

	for (place = *bucket; place; place = place->next_of_bucket)
		if (place->node == node && place->block == block)
			return place;
	if (places_length == MOST_PLACES)
		return NULL;
	place = &places[places_length++];
	*place = (struct place){ node, block, 0, *bucket };
	return *bucket = place;
}

/* The stack with this place in memory, without the frames that were left. */
static struct stack *stack_at(uint64_t place)
{
	uint64_t number = place / STACK_BYTES;
	struct stack *stack = &stacks[HASH(number) % STACKS];

	if (stack->number != number || !stack->base)
		*stack = (struct stack){ .number = number, .base = nodes };
	while (stack->depth && stack->frames[stack->depth - 1].place <= place)
		stack->depth--;
	return stack;
}

static struct node *node_on(const struct stack *stack)
{
	return stack->depth ? stack->frames[stack->depth - 1].node : stack->base;
}

static void on_call(unsigned int cpu, qemu_plugin_meminfo_t access, uint64_t address, void *data)
{
	struct stack *stack;

	if (!in_loop || !qemu_plugin_mem_is_store(access))
		return;
	stack = stack_at(address);
	if (stack->depth || stack == stack_now)
		here = node_on(stack);
	else
		stack->base = here; /* a call from user space, or an interrupt, goes on with a stack of its own */
	stack_now = stack;
	if (stack->depth < DEEPEST)
		stack->frames[stack->depth++] = (struct frame){ address, here };
	calling = data;
}

static void on_return(unsigned int cpu, qemu_plugin_meminfo_t access, uint64_t address, void *data)
{
	if (!in_loop || qemu_plugin_mem_is_store(access))
		return;
	stack_now = stack_at(address);
	here = node_on(stack_now);
	calling = NULL;
}

static void on_block_in_detail(unsigned int cpu, void *data)
{
	struct place *place;

	if (calling) {
		here = node_of(here, calling, data);
		calling = NULL;
		if (!here) {
			here = nodes;
			give_up(cpu);
			return;
		}
		stack_now->frames[stack_now->depth - 1].node = here;
	}
	if (!in_window)
		return;
	place = place_of(here, data);
	if (!place) {
		give_up(cpu);
		return;
	}
	if (place->executions++)
		return;
	ran_places = with_room_for_one_more(ran_places, ran_places_length, &ran_places_room, sizeof(*ran_places));
	ran_places[ran_places_length++] = place;
}

static void forget_detail(void)
{
	memset(node_buckets, 0, sizeof(node_buckets));
	memset(place_buckets, 0, sizeof(place_buckets));
	memset(stacks, 0, sizeof(stacks));
	nodes_length = 1;
	here = nodes;
	stack_now = NULL;
	calling = NULL;
	places_length = place_counts_length = ran_places_length = 0;
}

static void end_window_in_detail(int keep)
{
	for (size_t i = 0; i < ran_places_length; i++) {
		struct place *place = ran_places[i];

		if (keep && place_counts_length == MOST_COUNTS)
			in_loop = 0;
		else if (keep) {
			place_counts = with_room_for_one_more(place_counts, place_counts_length, &place_counts_room,
							      sizeof(*place_counts));
			place_counts[place_counts_length++] =
				(struct place_count){ windows - 1, place, place->executions };
		}
		place->executions = 0;
	}
	ran_places_length = 0;
}

static void write_detail(FILE *file)
{
	for (size_t i = 1; i < nodes_length; i++)
		fprintf(file, "node %u %u %" PRIx64 " %" PRIx64 "\n", nodes[i].number, nodes[i].parent->number,
			nodes[i].caller->address, nodes[i].entry->address);
	for (size_t i = 0; i < place_counts_length; i++) {
		const struct place *place = place_counts[i].place;

		fprintf(file, "at %u %u %" PRIx64 " %zu %" PRIu64 "\n", place_counts[i].window, place->node->number,
			place->block->address, place->block->instructions, place_counts[i].executions);
	}
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct block *block = buckets[i]; block; block = block->next_of_bucket)
			if (block->code && block->in_loop == loops)
				fprintf(file, "code %" PRIx64 " %zu%s\n", block->address, block->instructions, block->code);
}

/* The instructions in words. The guest may have put other code at this address since it was translated last. */
static void keep_code(struct block *block, const struct qemu_plugin_tb *tb)
{
	size_t size;
	FILE *text;

	free(block->code);
	block->code = NULL;
	text = open_memstream(&block->code, &size);
	if (!text)
		abort();
	for (size_t i = 0; i < block->instructions; i++) {
		const struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		char *words = qemu_plugin_insn_disas(instruction);

		fprintf(text, "\t%" PRIx64 " %s", qemu_plugin_insn_vaddr(instruction), words ? words : "");
		free(words);
	}
	fclose(text);
}

/* on_call, on_return, or NULL for other instructions. */
static qemu_plugin_vcpu_mem_cb_t call_or_return(const struct qemu_plugin_insn *instruction)
{
	unsigned char code[16] = { 0 };
	size_t length = qemu_plugin_insn_data(instruction, code, sizeof(code)), i = 0;

	while (i < length && (code[i] == 0x2e || code[i] == 0x3e || code[i] == 0x66 || (code[i] & 0xfe) == 0xf2))
		i++; /* prefixes */
	if (i + 1 < length && (code[i] & 0xf0) == 0x40)
		i++; /* REX */
	if (i == length)
		return NULL;
	if (code[i] == 0xe8 || (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2))
		return on_call;
	return code[i] == 0xc3 || code[i] == 0xc2 ? on_return : NULL;
}
