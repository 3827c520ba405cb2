#include "report/output/beside.h"

#include <system_error>

namespace tacho::report {

Beside::Beside(std::size_t items, std::function<void()> work) : work_(std::move(work)) {
  constexpr std::size_t kWorthAThread = 4096;  // items
  if (items < kWorthAThread || std::thread::hardware_concurrency() < 2) return;
  try {
    thread_.emplace([this] {
      try {
        work_();
      } catch (...) {
        thrown_ = std::current_exception();
      }
    });
  } catch (const std::system_error&) {  // wait() does it: slower, and the same
  }
}

void Beside::wait() {
  if (!thread_) return work_();
  thread_->join();
  if (thrown_) std::rethrow_exception(thrown_);
}

}  // namespace tacho::report
