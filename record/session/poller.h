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
  // Descriptors that must stay open while this lives; -1: there is none.
  struct Descriptors {
    int signals = -1;
    int writer = -1;                 // readable when the writing thread has ended
    int reader = -1;                 // a pipe that the capture goes to
    int control = -1;                // commands
    int command = -1;                // readable when the recorded command has ended
    std::vector<int> channels = {};  // ring buffers of BPF objects
    std::vector<int> switches = {};  // events that begin another file
  };

  // The ready descriptors. The end of the command only ends the wait.
  struct Ready {
    bool rings = false;
    bool signals = false;
    bool writer = false;
    bool reader_gone = false;
    bool control = false;
    bool switches = false;
    bool last_task_ended = false;  // no event can follow
  };

  Poller() = default;
  Result<> watch(KernelEvents& events, const Descriptors& descriptors);
  Result<Ready> wait(std::chrono::milliseconds patience);
  // `event` was opened after watch(); watches its ring, if nothing does yet.
  Result<> watch_reopened(const OpenEvent& event);
  // Stops watching the control descriptor at its end of file, which it would report forever.
  Result<> stop_watching_control();

 private:
  static constexpr std::uint32_t kReadable = 1;  // EPOLLIN
  // A ring is watched through one event's descriptor, of each task in turn. Any of them reports the whole
  // ring.
  struct RingWatch {
    std::size_t event = 0;     // index in the plan
    std::vector<int> fds;      // of the tasks
    std::size_t watched = 0;   // index of the one in epoll
    bool system_wide = false;  // of no task: its end is never reported
  };

  Result<> watch_rings(KernelEvents& events);
  Result<> add(int fd, std::uint64_t data, std::uint32_t what = kReadable);
  Result<> remove(int fd);
  Result<> task_ended(std::size_t ring, Ready& ready);

  format::Fd epoll_;
  int control_ = -1;
  std::vector<RingWatch> ring_watches_;
  std::set<std::size_t> later_rings_;  // rings added after these
  std::size_t live_rings_ = 0;
};

}  // namespace tacho::record
