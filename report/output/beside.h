// A piece of work beside the caller's own.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

namespace tacho::report {

class Beside {
 public:
  // Begins `work`, which is about so many items, on a thread of its own: where these are some thousands, the
  // machine has more than one processor and the system gives a thread. Until wait() has returned, the two
  // threads may change nothing that both look at.
  Beside(std::size_t items, std::function<void()> work);
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // Returns when the work is done; what no thread has begun is done here. Once only. Throws what the work
  // threw.
  void wait();

 private:
  std::function<void()> work_;
  std::exception_ptr thrown_;
  std::optional<std::jthread> thread_;  // the last member: it uses the others
};

}  // namespace tacho::report
