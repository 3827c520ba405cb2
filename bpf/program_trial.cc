#include "bpf/program_trial.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "format/file.h"

namespace tacho::bpf {
namespace {

// r0 = 0; exit
constexpr std::array<bpf_insn, 2> kNothing{
    {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
     {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}}};

// What a program of this kind is tied to when it is loaded; a function that the kernel has for tests alone,
// so attaching there costs nobody anything.
constexpr const char* kFunction = "bpf_fentry_test1";
constexpr const char* kTracepoint = "sched_process_exit";

struct Row {
  std::string_view kind, usage;
  bpf_prog_type type;
  bpf_attach_type attach;
  const char* target;  // in the kernel's BTF; nothing: of no place
  bool is_attached;    // a load alone says too little
};
constexpr auto kNone = static_cast<bpf_attach_type>(0);
constexpr Row kRows[] = {
    {"perf_event", "programs on the samples of clocks", BPF_PROG_TYPE_PERF_EVENT, kNone, nullptr, false},
    {"tracepoint", "SEC(\"tp/...\")", BPF_PROG_TYPE_TRACEPOINT, kNone, nullptr, false},
    {"raw_tracepoint", "SEC(\"raw_tp/...\")", BPF_PROG_TYPE_RAW_TRACEPOINT, kNone, nullptr, false},
    {"kprobe", "SEC(\"kprobe/...\") and uprobes", BPF_PROG_TYPE_KPROBE, kNone, nullptr, false},
    {"tp_btf", "SEC(\"tp_btf/...\")", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, kTracepoint, false},
    {"fentry", "SEC(\"fentry/...\"), SEC(\"fexit/...\")", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, kFunction,
     true},
};

std::string text_of(int code) { return std::strerror(code); }

std::string refusal_of(const Row& row) {
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = row.attach;
  if (row.target != nullptr) {
    const int id = libbpf_find_vmlinux_btf_id(row.target, row.attach);
    if (id < 0) return "the kernel's BTF does not have it: " + text_of(-id);
    options.attach_btf_id = static_cast<__u32>(id);
  }
  const format::Fd program(
      bpf_prog_load(row.type, "tacho_trial", "GPL", kNothing.data(), kNothing.size(), &options));
  if (!program) return text_of(errno);
  if (!row.is_attached) return {};
  const format::Fd link(bpf_raw_tracepoint_open(nullptr, program.get()));
  return link ? std::string() : "it loads, but cannot be attached: " + text_of(errno);
}

}  // namespace

std::vector<ProgramTrial> try_programs() {
  // What libbpf has to say about a missing BTF is in our own words.
  const auto before = libbpf_set_print(nullptr);
  std::vector<ProgramTrial> trials;
  for (const Row& row : kRows) trials.push_back({row.kind, row.usage, refusal_of(row)});
  libbpf_set_print(before);
  return trials;
}

}  // namespace tacho::bpf
