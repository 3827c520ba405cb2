// Epoll set of the record loop: rings, signals, the writing thread, commands, the workload's end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "record/kernel/kernel_events.h"

namespace tacho::record {

class Poller {
 public:
  // Descriptors; they must outlive this. -1: none.
  struct Descriptors {
    int signals = -1;
    int writer = -1;                 // eventfd: the writing thread has ended
    int reader = -1;                 // the output pipe
    int view = -1;                   // pidfd of the view that reads it
    int control = -1;                // --control
    int command = -1;                // pidfd of the workload
    std::vector<int> channels = {};  // ring buffers of BPF objects
    std::vector<int> switches = {};  // --switch-output-event
  };

  // The descriptors that are ready. The end of the command ends the wait, but has no member here.
  struct Ready {
    bool rings = false;
    bool signals = false;
    bool writer = false;
    bool reader_gone = false;
    bool control = false;
    bool switches = false;
    bool last_task_ended = false;  // no event can come any more
  };

  Poller() = default;
  Result<> watch(KernelEvents& events, const Descriptors& descriptors);
  Result<Ready> wait(std::chrono::milliseconds patience);
  // Watches the ring of an event that was opened after watch(), unless it is watched already.
  Result<> watch_reopened(const OpenEvent& event);
  // Stops watching the control descriptor at its end of file, which it would report forever.
  Result<> stop_watching_control();

 private:
  static constexpr std::uint32_t kReadable = 1;  // EPOLLIN
  // A ring is watched by the descriptor of one event, for one task at a time: each reports the whole ring.
  struct RingWatch {
    std::size_t event = 0;     // index in the plan
    std::vector<int> fds;      // one for each task
    std::size_t watched = 0;   // index of the one in epoll
    bool system_wide = false;  // it has no task, and never ends
  };

  Result<> watch_rings(KernelEvents& events);
  Result<> watch_fd(int fd, std::uint64_t data, std::uint32_t what = kReadable);
  Result<> remove(int fd);
  Result<> task_ended(std::size_t ring, Ready& ready);

  format::Fd epoll_;
  int control_ = -1;
  std::vector<RingWatch> ring_watches_;
  std::set<std::size_t> later_rings_;  // rings added after these
  std::size_t live_rings_ = 0;
};

}  // namespace tacho::record
