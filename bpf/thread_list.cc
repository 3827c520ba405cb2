#include "bpf/thread_list.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "bpf/attach/follower.h"
#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"
#include "format/base/file.h"

namespace tacho::bpf {
namespace {

Error explain_iterator(const LibbpfLog& said, int code) {
  return system_error(
      "the kernel refused the program that lists threads (it needs Linux 5.15)" + refusal_in_log(said.text()),
      code);
}

std::optional<ListedThread> parse_record(format::Cursor& in) {
  ListedThread thread;
  thread.switches = in.u64();
  for (std::uint64_t& each : thread.registers) each = in.u64();
  thread.pid = in.u32();
  thread.tid = in.u32();
  thread.state = in.u32();
  thread.flags = in.u32();
  thread.is_on_cpu = in.u32() != 0;
  thread.has_memory = in.u32() != 0;
  const std::uint32_t frames = in.u32();
  thread.kernel_tid = in.u32();
  thread.comm = in.text(sizeof(tacho_thread_record::comm));
  if (in.failed() || frames > TACHO_THREAD_FRAMES) return std::nullopt;
  for (std::uint32_t i = 0; i < frames; ++i) thread.kernel.push_back(in.u64());
  if (in.failed()) return std::nullopt;
  return thread;
}

}  // namespace

std::vector<ListedThread> parse_thread_records(format::Bytes records) {
  std::vector<ListedThread> threads;
  for (format::Cursor in(records); in.left() != 0;) {
    auto thread = parse_record(in);
    if (!thread) break;
    threads.push_back(std::move(*thread));
  }
  return threads;
}

struct ThreadList::State {
  OwnedObject object;
  OwnedLink link;
};

ThreadList::ThreadList(std::unique_ptr<State> state) : state_(std::move(state)) {}
ThreadList::ThreadList(ThreadList&&) noexcept = default;
ThreadList& ThreadList::operator=(ThreadList&&) noexcept = default;
ThreadList::~ThreadList() = default;

Result<ThreadList> ThreadList::load(tacho_thread_choice choice, std::span<const int> ids) {
  const format::Bytes elf = threads_object();
  if (elf.empty()) return Error{"this tacho was built without clang and has no program that lists threads"};
  if (auto may = check_may_load(); !may) return std::move(may.error());
  LibbpfLog said;
  auto state = std::make_unique<State>();
  state->object = open_object(elf, "tacho_threads");
  if (state->object == nullptr) return explain_iterator(said, errno);
  bpf_object* const object = state->object.get();
  bpf_map* const chosen = bpf_object__find_map_by_name(object, "chosen");
  const auto constants = initial_bytes(bpf_object__find_map_by_name(object, ".rodata"));
  bpf_program* const program = bpf_object__find_program_by_name(object, "each");
  if (chosen == nullptr || program == nullptr || constants.size() < sizeof(tacho_thread_settings))
    return Error{"the program that lists threads has no section for its settings"};
  const tacho_thread_settings settings{choice, pid_namespace_inode()};
  std::memcpy(constants.data(), &settings, sizeof settings);
  bpf_map__set_max_entries(chosen, static_cast<std::uint32_t>(std::max<std::size_t>(ids.size(), 1)));
  if (const int code = bpf_object__load(object); code != 0) return explain_iterator(said, -code);
  for (const int id : ids) {
    const std::uint32_t yes = 1;
    if (bpf_map_update_elem(bpf_map__fd(chosen), &id, &yes, BPF_ANY) != 0)
      return system_error("the table of chosen threads", errno);
  }
  state->link.reset(bpf_program__attach_iter(program, nullptr));
  if (state->link == nullptr) return explain_iterator(said, errno);
  return ThreadList(std::move(state));
}

Result<std::vector<ListedThread>> ThreadList::read_threads() const {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30, kPiece = std::size_t{64} << 10;
  const format::Fd from(bpf_iter_create(bpf_link__fd(state_->link.get())));
  if (!from) return system_error("the iterator over threads", errno);
  std::vector<std::byte> records;
  for (std::size_t used = 0;;) {
    records.resize(used + kPiece);
    const ssize_t got = ::read(from.get(), records.data() + used, kPiece);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return system_error("the iterator over threads", errno);
    used += static_cast<std::size_t>(got);
    records.resize(used);
    if (got == 0) return parse_thread_records(records);
    if (used > kMostBytes) return Error{"the iterator over threads does not end"};
  }
}

}  // namespace tacho::bpf
