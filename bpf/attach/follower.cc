#include "bpf/attach/follower.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"

namespace tacho::bpf {
namespace {

constexpr std::uint32_t kThreadsInElement = 4096;  // bytes of one element, a page, as in tacho/emit.h
constexpr std::uint32_t kMostThreads = 1U << 22;   // PID_MAX_LIMIT: pid_max can be raised at any time
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;   // inode of the initial PID namespace

// r0 = address of the state of thread `thread`; jumps if there is none. Clobbers r1 to r5, r8, the thread's
// register and the first word of the stack.
std::size_t find_state_of(Assembler& program, int map, int thread) {
  program.move32(8, thread);
  program.shift_right32(8, 12);
  program.store(BPF_W, 10, 8, -4);
  program.mask32(thread, kThreadsInElement - 1);
  program.set_map(1, map);
  program.set_stack_address(2, -4);
  program.call(BPF_FUNC_map_lookup_elem);
  const std::size_t none = program.jump_if_number(BPF_JEQ, 0, 0);
  program.add_register(0, thread);
  return none;
}

// A program of a dozen instructions. The leave_*() jumps go to its end, which returns 0.
class Program : public Assembler {
 public:
  void leave_when_zero(int which) { exits_.push_back(jump_if_number(BPF_JEQ, which, 0)); }
  void leave_unless(int which, std::int32_t number) {
    exits_.push_back(jump_if_number(BPF_JNE, which, number));
  }

  // r0 = address of the state of `thread`; leaves if there is none.
  void find_state(int map, int thread) { exits_.push_back(find_state_of(*this, map, thread)); }

  std::vector<bpf_insn> finish() {
    for (const std::size_t each : exits_) set_target(each, here());
    exit_with(0);
    const auto done = instructions();
    return {done.begin(), done.end()};
  }

 private:
  std::vector<std::size_t> exits_;
};

// On sched_process_fork(parent, child), in the parent: sets the child's state to the parent's, for every new
// thread, which also clears the state of an earlier thread with its tid.
std::vector<bpf_insn> fork_program(int map, std::int32_t pid_offset, Children children) {
  Program program;
  program.load(BPF_DW, 6, 1, 8);  // the child
  if (children == Children::Followed) {
    program.call(BPF_FUNC_get_current_pid_tgid);
    program.move32(7, 0);
    program.find_state(map, 7);
    program.load(BPF_B, 9, 0, 0);
  } else {
    program.set(9, 0);
  }
  program.set_stack_address(1, -8);
  program.set(2, sizeof(std::uint32_t));
  program.move(3, 6);
  program.add_number(3, pid_offset);
  program.call(BPF_FUNC_probe_read_kernel);
  program.leave_unless(0, 0);
  program.load(BPF_W, 7, 10, -8);
  program.find_state(map, 7);
  program.store(BPF_B, 0, 9, 0);
  return program.finish();
}

// On task_rename(task, comm), in the task: the command is followed from its exec on. begin_new_exec() renames
// the task before sched_process_exec, where the kernel runs programs in the order of attaching: an object's
// programs may run before exec_program().
std::vector<bpf_insn> rename_program(int map) {
  Program program;
  program.call(BPF_FUNC_get_current_pid_tgid);
  program.move32(7, 0);
  program.find_state(map, 7);
  program.load(BPF_B, 9, 0, 0);
  program.leave_unless(9, static_cast<std::int32_t>(Followed::FromExec));
  program.set(9, static_cast<std::int32_t>(Followed::Yes));
  program.store(BPF_B, 0, 9, 0);
  return program.finish();
}

// On sched_process_exec(task, old pid, binprm), in the task: a thread other than the leader gets the leader's
// tid.
std::vector<bpf_insn> exec_program(int map) {
  Program program;
  program.load(BPF_DW, 7, 1, 8);
  program.find_state(map, 7);
  program.load(BPF_B, 9, 0, 0);
  program.leave_when_zero(9);
  program.set(9, static_cast<std::int32_t>(Followed::Yes));
  program.call(BPF_FUNC_get_current_pid_tgid);
  program.move32(7, 0);
  program.find_state(map, 7);
  program.store(BPF_B, 0, 9, 0);
  return program.finish();
}

// The offset of task_struct.pid.
Result<std::int32_t> pid_offset_of_tasks() {
  const OwnedBtf types(btf__load_vmlinux_btf());
  const Error none{"this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which has the offset of task_struct.pid",
                   ENOENT};
  if (types == nullptr) return none;
  const int id = btf__find_by_name_kind(types.get(), "task_struct", BTF_KIND_STRUCT);
  if (id < 0) return none;
  const auto pid =
      find_member(types.get(), btf__type_by_id(types.get(), static_cast<std::uint32_t>(id)), "pid");
  if (pid) return static_cast<std::int32_t>(pid->bit / 8);
  return none;
}

}  // namespace

Result<> Follower::make_table() {
  LIBBPF_OPTS(bpf_map_create_opts, options);
  options.map_flags = BPF_F_MMAPABLE;
  table_ = format::Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "tacho_followed", sizeof(std::uint32_t),
                                     kThreadsInElement, kMostThreads / kThreadsInElement, &options));
  if (!table_) return system_error("the table of threads", errno);
  void* const bytes = ::mmap(nullptr, kMostThreads, PROT_READ | PROT_WRITE, MAP_SHARED, table_.get(), 0);
  if (bytes == MAP_FAILED) return system_error("the table of threads", errno);
  states_ = format::Mapping(bytes, kMostThreads);
  return Done{};
}

Result<> Follower::load_programs(Children children) {
  const LibbpfLog quiet;
  const auto offset = pid_offset_of_tasks();
  if (!offset) return offset.error();
  struct Part {
    const char* name;
    const char* tracepoint;
    std::vector<bpf_insn> instructions;
  };
  const Part parts[] = {
      {"tacho_fork", "sched_process_fork", fork_program(table_.get(), *offset, children)},
      {"tacho_rename", "task_rename", rename_program(table_.get())},
      {"tacho_exec", "sched_process_exec", exec_program(table_.get())},
  };
  for (const Part& part : parts) {
    auto program = load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, part.name, part.instructions,
                                std::string("the program ") + part.name);
    if (!program) return std::move(program.error());
    format::Fd link(bpf_raw_tracepoint_open(part.tracepoint, program->get()));
    if (!link) return system_error(std::string("the tracepoint ") + part.tracepoint, errno);
    programs_.push_back(std::move(*program));
    links_.push_back(std::move(link));
  }
  return Done{};
}

void return_unless_followed(Assembler& program, int table, std::int32_t result) {
  program.call(BPF_FUNC_get_current_pid_tgid);
  program.move32(7, 0);
  const std::size_t unknown = find_state_of(program, table, 7);
  program.load(BPF_B, 7, 0, 0);
  const std::size_t followed = program.jump_if_number(BPF_JEQ, 7, static_cast<std::int32_t>(Followed::Yes));
  program.set_target(unknown, program.here());
  program.exit_with(result);
  program.set_target(followed, program.here());
}

std::uint32_t pid_namespace_inode() {
  struct stat own {};
  if (::stat("/proc/self/ns/pid", &own) != 0 || own.st_ino == kFirstPidNamespace) return 0;
  return static_cast<std::uint32_t>(own.st_ino);
}

Result<Follower> Follower::create(Children children) {
  Follower follower;
  if (auto made = follower.make_table(); !made) return std::move(made.error());
  if (auto loaded = follower.load_programs(children); !loaded) return std::move(loaded.error());
  return follower;
}

void Follower::set_thread(int thread, Followed state) {
  const auto bytes = states_.bytes();
  if (thread < 0 || static_cast<std::size_t>(thread) >= bytes.size()) return;
  std::atomic_ref(bytes[static_cast<std::size_t>(thread)])
      .store(static_cast<std::byte>(state), std::memory_order_relaxed);
}

Followed Follower::thread_state(int thread) const {
  const auto bytes = states_.bytes();
  if (thread < 0 || static_cast<std::size_t>(thread) >= bytes.size()) return Followed::No;
  return static_cast<Followed>(
      std::atomic_ref(bytes[static_cast<std::size_t>(thread)]).load(std::memory_order_relaxed));
}

}  // namespace tacho::bpf
