/* Maps and records of the unwinder, shared with the recorder: C, compiled on both sides. */
#ifndef TACHO_STACK_MAPS_H
#define TACHO_STACK_MAPS_H

#include <linux/types.h>

#include "unwind/unwind_row.h"

/* Unwind rows are stored in blocks, and blocks in segments, which are added as needed up to a limit. The blocks of one table
 * have consecutive numbers. */
enum tacho_stack_sizes {
  TACHO_BLOCK_ROWS = 64,
  TACHO_SEGMENT_BLOCKS = 2048, /* 1 MiB */
  TACHO_MOST_SEGMENTS = 1024,
  TACHO_MOST_MODULES = 16384,
  TACHO_MOST_FILES = 32768, /* several files may be one module: copies in containers */
  TACHO_MOST_RANGES_OF_PROCESS = 16384,
  TACHO_MOST_FRAMES = 1024,
  TACHO_STACK_PAGE = 4096,
  TACHO_ODD_COPIES = 2000, /* most copies a second for TACHO_END_ODD_RULE */
  TACHO_COPIED_PAGES = 6, /* in a part, the first one in part only; per-CPU map values are limited to 32 KiB */
  TACHO_COPIED_PARTS = 4,
};

/* A mark among the frames: the next address was interrupted by a signal. It is PERF_CONTEXT_USER, at which readers of call
 * chains start a new chain. All other frames but the first are return addresses. */
#define TACHO_INTERRUPTED ((__u64)-512)

/* Variables of the running program. */
struct tacho_walk_variables {
  __u32 now;      /* seconds; set by the recorder */
  __u32 may_copy; /* set by the recorder when it finishes walks from stack copies */
  __u64 copies;   /* number made so far */
  __u64 samples;  /* of counters and clocks, for which the program ran */
  __u32 odd_since, odd_copies; /* copies for TACHO_END_ODD_RULE in the second odd_since */
};

struct tacho_unwind_block {
  struct tacho_unwind_row rows[TACHO_BLOCK_ROWS]; /* rows after the table's end have pc 0xffffffff */
};

/* Reserved module numbers. */
enum tacho_known_modules {
  TACHO_MODULE_OF_NO_FILE = 0, /* anonymous memory: walked by frame pointer */
  TACHO_MODULE_OF_VDSO = 1,
  TACHO_MODULE_REQUESTED = 0xffffffff, /* requested from the recorder */
};

/* Byte offsets of members of kernel structures, from the kernel's BTF. */
struct tacho_kernel_layout {
  __u32 is_known; /* else the recorder writes the mappings (tacho_process_ranges) */
  __u32 page_bits; /* 12 for pages of 4096 bytes */
  __u32 task_mm, task_perf_contexts, perf_contexts /* number of pointers */;
  __u32 mm_mappings /* the root of a maple tree */, mm_vdso;
  __u32 vma_start, vma_end, vma_mm, vma_flags, vma_page_offset, vma_file;
  __u32 file_inode;
  __u32 inode_number, inode_size, inode_generation, inode_super_block;
  __u32 inode_changed, inode_changed_ns; /* ctime: seconds, nanoseconds; 0: not known */
  __u32 super_block_device;
  /* Of uprobes and uretprobes: */
  __u32 has_uprobes; /* all of these are known */
  __u32 task_utask, utask_returns /* the first return_instance */, return_next, return_stack, return_address;
  __u32 mm_xol_area, xol_area_address;     /* the mapping with the uretprobe trampoline and copied instructions */
  __u32 utask_address, utask_xol_address; /* of the instruction with a uprobe, and of its copy */
};

/* Constants of maple trees, the same in all kernels so far. If BTF has other ones, tacho_kernel_layout.is_known is 0. */
enum tacho_maple_tree {
  TACHO_MAPLE_NODE_WORDS = 32,
  TACHO_MAPLE_LEAF = 1,
  TACHO_MAPLE_RANGES = 2,
  TACHO_MAPLE_RANGES_AND_GAPS = 3,
  TACHO_MAPLE_PIVOTS = 15, /* a node: parent, pivots, and one slot more than pivots */
  TACHO_MAPLE_PIVOTS_WITH_GAPS = 9,
};

/* Constants that the recorder sets before the program is loaded. */
struct tacho_walk_options {
  __u32 most_frames;
  __u32 only_recorded_tasks; /* programs on tracepoints ignore tasks that are not recorded */
  __u32 namespace_inode; /* of the recorder's pid namespace; 0: the initial one */
  struct tacho_kernel_layout layout;
};

/* Identity of a mapped file. Size and ctime differ when a file was rewritten in place; the generation, on file systems that
 * have one, when it got the inode number of a removed file. */
struct tacho_file_key {
  __u64 inode, size;
  __u64 changed; /* ctime in ns; 0: not known */
  __u32 device, generation; /* the device as the kernel counts it: major << 20 | minor */
};

/* Request for the module number of a file, with one of its mappings. */
struct tacho_file_request {
  struct tacho_file_key key;
  __u64 start, end;
  __u32 process, unused;
};

/* A mapping of code: ELF address = address - bias. */
struct tacho_code_range {
  __u64 start, end, bias;
  __u32 module;
  __u32 file; /* the recorder's file number; not used by the program */
};

/* A process's part of tacho_ranges: ascending, not overlapping. */
struct tacho_process_ranges {
  __u32 first, count;
};

enum tacho_module_state {
  TACHO_MODULE_PENDING = 0, /* its table is not loaded yet, or was evicted */
  TACHO_MODULE_READY = 1,
  TACHO_MODULE_BARE = 2, /* it has no unwind table: JIT code, Go */
};
struct tacho_unwind_module {
  __u64 base; /* ELF address to which pc in the rows is relative */
  __u32 first_block, blocks;
  __u32 state;
  __u32 last_used; /* tacho_walk_variables.now at the last walk through it */
};

/* How a walk ended. */
enum tacho_stack_end {
  TACHO_END_WHOLE,      /* at the first function of a thread */
  TACHO_END_FRAME_ZERO, /* at a frame pointer or return address of 0 */
  TACHO_END_CUT,        /* at the limit of frames */
  TACHO_END_NO_PROCESS, /* its mappings are not known yet */
  TACHO_END_NO_MAPPING, /* an address outside of all mapped code */
  TACHO_END_NO_TABLE,   /* the module's table is not loaded yet, or was evicted */
  TACHO_END_NO_RULE,    /* code without an unwind row and without a frame pointer */
  TACHO_END_ODD_RULE,   /* a CFI rule that an unwind row cannot hold */
  TACHO_END_UNREADABLE, /* a part of the stack is not in memory */
  TACHO_END_LOOP,       /* the caller's frame is not above this one */
  TACHO_END_32_BIT,     /* 32-bit code */
  TACHO_END_EXITING,    /* the process has released its memory */
  TACHO_END_EXEC,       /* in execve, after the old program's stack was released */
  TACHO_END_COPY,       /* the recorder came to the end of the stack copy */
  TACHO_END_OUTSIDE,    /* the process is outside of the recorder's pid namespace */
  TACHO_END_COUNT,
};

/* Header of a walk's record. `frames` addresses follow, leaf first; with TACHO_STACK_HAS_COPY in `end` also the number of a
 * stack copy. */
#define TACHO_STACK_HAS_COPY 0x8000
struct tacho_stack_record {
  __u32 tid;
  __u16 end; /* enum tacho_stack_end */
  __u16 frames;
};

/* A stack copy, from which the recorder finishes a walk (record/stacks/deferred_unwinder.h): registers, and the stack from `sp`
 * on. `frames`: the number of frames before; the last one is in the module without a table. After TACHO_END_ODD_RULE the copy
 * starts at the sampled function, whose registers are all known. A deep stack has several parts with one number, and `sp` is
 * where each starts. */
struct tacho_stack_copy {
  __u64 number, sp, bp;
  __u64 extra; /* TACHO_USER_EXTRA */
  __u32 frames;
  __u8 is_return, is_bp_known, is_extra_known, part;
  /* One page more than is copied, which the verifier requires. */
  __u8 bytes[(TACHO_COPIED_PAGES + 1) * TACHO_STACK_PAGE];
};

#endif
