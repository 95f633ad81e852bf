/*
 * The archive libelf.a of elfutils 0.192 (Debian 13) calls these two functions and does not have them. They keep the
 * data that elf_getdata_rawchunk() returned, which neither libbpf nor the tester calls. So there is nothing to keep.
 */
__attribute__((weak)) void eu_search_tree_init(void *tree) {}
__attribute__((weak)) void eu_search_tree_fini(void *tree, void (*free_node)(void *)) {}
