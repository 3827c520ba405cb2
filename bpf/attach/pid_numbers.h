// PidNumbers: in a pid namespace, the numbers that BPF programs see (the initial namespace's) and the ones of
// perf samples, /proc and users (the recorder's), each by the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bpf/programs/pid_numbers.h"
#include "format/base/result.h"

namespace tacho::bpf {

class PidNumbers {
 public:
  // Nothing in the initial namespace, where the numbers are the same. An error: the programs are refused
  // (Linux before 5.8, missing rights), or tacho was built without clang.
  static Result<std::optional<PidNumbers>> load();
  PidNumbers(PidNumbers&&) noexcept;
  PidNumbers& operator=(PidNumbers&&) noexcept;
  ~PidNumbers();

  // Of a thread, also for some time after its end. Zeros: it is outside of the namespace. Any thread may call
  // both.
  tacho_own_numbers own(std::uint32_t kernel_tid) const;
  // 0: there is no such thread.
  std::uint32_t kernel_tid(std::uint32_t own_tid) const;

 private:
  struct State;
  explicit PidNumbers(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The number for a BPF program of a thread that the user or /proc names; 0: there is no such thread.
inline std::uint32_t kernel_tid_of(const std::optional<PidNumbers>& numbers, std::uint32_t tid) {
  return numbers ? numbers->kernel_tid(tid) : tid;
}

}  // namespace tacho::bpf
