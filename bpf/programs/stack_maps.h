/* Shared by the recorder and the BPF program that walks stacks: the contents of its maps, and its records. C, and
 * compiled on both sides. */
#ifndef TACHO_STACK_MAPS_H
#define TACHO_STACK_MAPS_H

#include <linux/types.h>

#include "unwind/unwind_row.h"

/* Rows of unwind tables are in blocks, and blocks in segments, which are added while memory lasts. The blocks of
 * one table have consecutive numbers. */
enum tacho_stack_sizes {
  TACHO_BLOCK_ROWS = 64,
  TACHO_SEGMENT_BLOCKS = 2048, /* 1 MiB */
  TACHO_MOST_SEGMENTS = 1024,
  TACHO_MOST_MODULES = 16384,
  TACHO_MOST_FILES = 32768, /* a module may be several files: copies in containers */
  TACHO_MOST_RANGES_OF_PROCESS = 16384,
  TACHO_MOST_FRAMES = 1024,
  TACHO_STACK_PAGE = 4096,
  TACHO_ODD_COPIES = 2000, /* in a second: such code may never have rules that a row can hold */
  TACHO_COPIED_PAGES = 6, /* in a part, the first one not whole; a value of a map of one CPU has 32 KiB */
  TACHO_COPIED_PARTS = 4,
};

/* Stands among a walk's frames, before an address that a signal interrupted: PERF_CONTEXT_USER, which readers of call chains
 * know as the end of one chain and the start of another. All other frames but the first are return addresses. */
#define TACHO_INTERRUPTED ((__u64)-512)

/* What changes while the program runs. */
struct tacho_walk_variables {
  __u32 now;      /* which second it is: the recorder sets it */
  __u32 may_copy; /* the recorder takes copies, and finishes stacks */
  __u64 copies;   /* so many were made */
  __u32 odd_since, odd_copies; /* in which second: how many of stacks that ended at an odd rule */
};

struct tacho_unwind_block {
  struct tacho_unwind_row rows[TACHO_BLOCK_ROWS]; /* behind the table's end: pc of all ones */
};

/* Modules with a number of their own. */
enum tacho_known_modules {
  TACHO_MODULE_OF_NOTHING = 0, /* code that is no file: found by frame pointers */
  TACHO_MODULE_OF_VDSO = 1,
  TACHO_MODULE_ASKED_FOR = 0xffffffff, /* the recorder was asked which it is */
};

/* Layout of the kernel's structures of mappings: byte offsets from their start, from its BTF. */
struct tacho_kernel_layout {
  __u32 is_known; /* else the recorder writes the mappings (tacho_process_ranges) */
  __u32 task_mm, task_perf_contexts, perf_contexts /* how many pointers */;
  __u32 mm_mappings /* the root of a maple tree */, mm_vdso;
  __u32 vma_start, vma_end, vma_mm, vma_flags, vma_page_offset, vma_file;
  __u32 file_inode;
  __u32 inode_number, inode_size, inode_generation, inode_super_block;
  __u32 inode_changed, inode_changed_ns; /* when its status did last: seconds, and the rest; 0: not known */
  __u32 super_block_device;
  /* Of probes at the return of functions, where all of it is known: */
  __u32 knows_returns;
  __u32 task_probes, probes_returns /* the first of a list */, return_next, return_place, return_address;
  __u32 mm_probe_area, probe_area_address;
  __u32 probes_place, probes_copy; /* of an instruction with a probe, which runs elsewhere */
};

/* Constants of all kernels with maple trees; with other numbers the layout is not known. */
enum tacho_maple_tree {
  TACHO_MAPLE_NODE_WORDS = 32,
  TACHO_MAPLE_LEAF = 1,
  TACHO_MAPLE_RANGES = 2,
  TACHO_MAPLE_RANGES_AND_GAPS = 3,
  TACHO_MAPLE_PIVOTS = 15, /* before as many slots and one more; first there is a word for the parent */
  TACHO_MAPLE_PIVOTS_WITH_GAPS = 9,
};

/* Constants that the recorder sets before the program is loaded. */
struct tacho_walk_options {
  __u32 most_frames;
  __u32 skips_strangers; /* programs on tracepoints: processes that are not watched */
  __u64 namespace_device, namespace_inode; /* the recorder's own of process numbers; 0: the first one */
  struct tacho_kernel_layout layout;
};

/* Identity of a mapped file. Size and time distinguish files that were rewritten in place, the generation
 * distinguishes files that got the inode of a removed one, where the file system has one. */
struct tacho_file_key {
  __u64 inode, size;
  __u64 changed; /* ns since 1970, of the status; 0: not known */
  __u32 device, generation; /* the device as the kernel counts it: major << 20 | minor */
};

/* A file that is not among the known ones, and a process that has it mapped there. */
struct tacho_file_question {
  struct tacho_file_key key;
  __u64 start, end;
  __u32 process, unused;
};

/* Code that is mapped in a process: ELF address = address - bias. */
struct tacho_code_range {
  __u64 start, end, bias;
  __u32 module;
  __u32 file; /* the recorder's number of it, not the program's business */
};

/* Location of a process's ranges, ascending and not overlapping. */
struct tacho_process_ranges {
  __u32 first, count;
};

enum tacho_module_state {
  TACHO_MODULE_PENDING = 0, /* its table is not there yet, or not any more */
  TACHO_MODULE_READY = 1,
  TACHO_MODULE_BARE = 2, /* it has no table: code made at run time, Go */
};
struct tacho_unwind_module {
  __u64 base; /* ELF address from which the rows count */
  __u32 first_block, blocks;
  __u32 state;
  __u32 last_used; /* what the time was when a stack led through it */
};

/* How a walk ended. */
enum tacho_stack_end {
  TACHO_END_WHOLE,      /* at the first function of a thread */
  TACHO_END_FRAME_ZERO, /* where a chain of frame pointers ends */
  TACHO_END_CUT,        /* more frames than asked for */
  TACHO_END_NO_PROCESS, /* its mappings are not known yet */
  TACHO_END_NO_MAPPING, /* an address outside of all mapped code */
  TACHO_END_NO_TABLE,   /* the module's table is not there yet, or not any more */
  TACHO_END_NO_RULE,    /* code that nothing describes, without a frame pointer */
  TACHO_END_ODD_RULE,   /* a rule that tables cannot hold */
  TACHO_END_UNREADABLE, /* a part of the stack is not in memory */
  TACHO_END_LOOP,       /* the caller's frame would not lie above */
  TACHO_END_32_BIT,     /* a program of another width */
  TACHO_END_EXITING,    /* the process's memory is gone already */
  TACHO_END_EXEC,       /* in execve, when the old program's stack is gone */
  TACHO_END_COPY,       /* beyond the copy of a stack that is finished by the recorder */
  TACHO_END_COUNT,
};

/* A record: header, then `frames` addresses, leaf first. With TACHO_STACK_HAS_COPY in `end`: one word more, the number of
 * a copy. */
#define TACHO_STACK_HAS_COPY 0x8000
struct tacho_stack_record {
  __u32 tid;
  __u16 end; /* enum tacho_stack_end */
  __u16 frames;
};

/* A stack that led to a module without a table: what the recorder needs to continue when it has read the sample.
 * `frames`: the ones found before, the last one is in that module. Of a stack that ended at an odd rule: the same
 * from the sampled function on, where all registers are known. Then the stack, from `sp` on. A deep one has
 * several parts: the later ones have the number of the first, and `sp` is where they start. */
struct tacho_stack_copy {
  __u64 number, sp, bp, rbx;
  __u32 frames;
  __u8 is_return, is_bp_known, is_rbx_known, part;
  /* A page more than is copied: the verifier does not know better. */
  __u8 bytes[(TACHO_COPIED_PAGES + 1) * TACHO_STACK_PAGE];
};

#endif
