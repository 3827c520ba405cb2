#include "bpf/attach/pid_numbers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "bpf/attach/follower.h"
#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"
#include "bpf/thread_list.h"
#include "format/base/file.h"

namespace tacho::bpf {
namespace {

Error explain_numbers(const LibbpfLog& said, int code) {
  return system_error("the kernel refused the programs that translate pids of this pid namespace" +
                          refusal_in_log(said.text()),
                      code);
}

// Runs an iterator that writes nothing.
Result<> run_silent_iterator(bpf_program* program, const LibbpfLog& said) {
  const OwnedLink link(bpf_program__attach_iter(program, nullptr));
  if (link == nullptr) return explain_numbers(said, errno);
  const format::Fd from(bpf_iter_create(bpf_link__fd(link.get())));
  if (!from) return explain_numbers(said, errno);
  std::array<char, 64> none{};
  while (true) {
    const ssize_t got = ::read(from.get(), none.data(), none.size());
    if (got == 0) return Done{};
    if (got < 0 && errno != EINTR && errno != EAGAIN) return explain_numbers(said, errno);
  }
}

}  // namespace

struct PidNumbers::State {
  OwnedObject object;
  OwnedLink forks;
  int own_numbers = -1, kernel_tids = -1;  // maps
};

PidNumbers::PidNumbers(std::unique_ptr<State> state) : state_(std::move(state)) {}
PidNumbers::PidNumbers(PidNumbers&&) noexcept = default;
PidNumbers& PidNumbers::operator=(PidNumbers&&) noexcept = default;
PidNumbers::~PidNumbers() = default;

Result<std::optional<PidNumbers>> PidNumbers::load() {
  const std::uint32_t inode = pid_namespace_inode();
  if (inode == 0) return std::optional<PidNumbers>();
  const format::Bytes elf = pid_numbers_object();
  if (elf.empty()) return Error{"this tacho was built without clang and cannot translate pids"};
  if (auto may = check_may_load(); !may) return std::move(may.error());
  const LibbpfLog said;
  auto state = std::make_unique<State>();
  state->object = open_object(elf, "tacho_numbers");
  if (state->object == nullptr) return explain_numbers(said, errno);
  bpf_object* const object = state->object.get();
  bpf_program* const each = bpf_object__find_program_by_name(object, "each");
  bpf_program* const on_fork = bpf_object__find_program_by_name(object, "on_fork");
  const auto constants = initial_bytes(bpf_object__find_map_by_name(object, ".rodata"));
  if (each == nullptr || on_fork == nullptr || constants.size() < sizeof inode)
    return Error{"the program that translates pids is not complete"};
  std::memcpy(constants.data(), &inode, sizeof inode);
  if (const int code = bpf_object__load(object); code != 0) return explain_numbers(said, -code);
  state->own_numbers = bpf_object__find_map_fd_by_name(object, "own_numbers");
  state->kernel_tids = bpf_object__find_map_fd_by_name(object, "kernel_tids");
  // First the forks, so that no thread is missed.
  state->forks.reset(bpf_program__attach(on_fork));
  if (state->forks == nullptr) return explain_numbers(said, errno);
  if (auto done = run_silent_iterator(each, said); !done) return std::move(done.error());
  return std::optional(PidNumbers(std::move(state)));
}

tacho_own_numbers PidNumbers::own(std::uint32_t kernel_tid) const {
  tacho_own_numbers numbers{};
  (void)bpf_map_lookup_elem(state_->own_numbers, &kernel_tid, &numbers);
  return numbers;
}

std::uint32_t PidNumbers::kernel_tid(std::uint32_t own_tid) const {
  std::uint32_t tid = 0;
  (void)bpf_map_lookup_elem(state_->kernel_tids, &own_tid, &tid);
  return tid;
}

}  // namespace tacho::bpf
