#include "report/output/text_pieces.h"

#include <algorithm>
#include <system_error>

namespace tacho::report {

TextPieces::TextPieces(std::size_t count, Make make) : count_(count), make_(std::move(make)) {
  constexpr unsigned kMostThreads = 4;
  const std::size_t wanted = std::min<std::size_t>(count, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < std::min<std::size_t>(wanted, kMostThreads); ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      break;  // write() makes the remaining pieces: slower, and the same bytes
    }
  }
}

TextPieces::~TextPieces() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
}

void TextPieces::make_next(std::unique_lock<std::mutex>& lock) {
  const std::size_t piece = next_++;
  Slot& slot = slots_[piece % kAhead];
  lock.unlock();
  make_(piece, slot.text);
  lock.lock();
  slot.is_made = true;
  changed_.notify_all();
}

void TextPieces::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || next_ == count_ || has_next(); });
    if (is_stopped_ || next_ == count_) return;
    make_next(lock);
  }
}

void TextPieces::write(TextOutput& out) {
  std::unique_lock lock(mutex_);
  while (written_ < count_ && !out.is_done()) {
    Slot& slot = slots_[written_ % kAhead];
    if (!slot.is_made) {
      if (has_next()) {
        make_next(lock);
      } else {
        changed_.wait(lock, [&slot] { return slot.is_made; });
      }
      continue;
    }
    lock.unlock();
    out.text(slot.text.view());
    out.line_end();
    slot.text.clear();
    lock.lock();
    slot.is_made = false;
    ++written_;
    changed_.notify_all();
  }
}

}  // namespace tacho::report
