#include "format/container/inflate_ahead.h"

#include <zstd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "format/codec/compression.h"

namespace tacho::format {

namespace {

constexpr unsigned kMaxThreads = 4;  // more threads would wait for the reader

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};
using Context = std::unique_ptr<ZSTD_DCtx, FreeContext>;

// Moves memory that another CPU used last into this CPU's cache, by one write to each line, many at a time.
// zstd would wait for each line, since it copies from bytes it has just written: without this, inflating took
// four times as long as on the reader's CPU.
void fetch_lines(Buffer& bytes) {
  constexpr std::size_t kLine = 64;
  volatile std::byte* const first = bytes.data();
  for (std::size_t at = 0; at < bytes.size(); at += kLine) first[at] = std::byte{0};
}

}  // namespace

std::optional<std::size_t> standalone_frame_size(Bytes packed, std::size_t limit) {
  const auto [frames, is_sound] = packed_bytes(packed);
  if (!is_sound) return std::nullopt;
  const auto size = ZSTD_getFrameContentSize(frames.data(), frames.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size == 0 || size > limit)
    return std::nullopt;
  const std::size_t whole = ZSTD_findFrameCompressedSize(frames.data(), frames.size());
  if (ZSTD_isError(whole) != 0 || whole != frames.size()) return std::nullopt;
  return static_cast<std::size_t>(size);
}

class InflateAhead::Job {
 public:
  Job(Bytes packed, std::size_t size, BlockRef keep)
      : frame_(packed_bytes(packed).frames), size_(size), keep_(std::move(keep)) {}

  enum class Memory : std::uint8_t { Own, ReadersLast };
  // `context` is null if there was no memory for it.
  void run(ZSTD_DCtx* context, Memory memory) {
    if (context == nullptr) {
      result_ = Error{"zstd: no memory for a decompression context"};
      return;
    }
    auto block = std::make_shared<Block>();
    block->bytes.resize(size_);
    if (memory == Memory::ReadersLast) fetch_lines(block->bytes);
    const std::size_t got =
        ZSTD_decompressDCtx(context, block->bytes.data(), size_, frame_.data(), frame_.size());
    if (ZSTD_isError(got) != 0)
      result_ = Error{std::string("zstd: ") + ZSTD_getErrorName(got)};
    else if (got != size_)
      result_ = Error{"zstd: the frame holds fewer bytes than it says"};
    else
      result_ = std::move(block);
    keep_.reset();
  }

  // Guarded by the pool's mutex until the job is done.
  enum class Stage { Waiting, Running, Done } stage = Stage::Waiting;
  Result<std::shared_ptr<Block>> take_result() { return std::move(result_); }

 private:
  Bytes frame_;
  std::size_t size_;
  BlockRef keep_;
  Result<std::shared_ptr<Block>> result_ = Error{"not inflated"};
};

struct InflateAhead::State {
  std::mutex mutex;
  std::condition_variable has_work, has_result;
  std::deque<JobRef> waiting;
  bool stopping = false;
  Context own{ZSTD_createDCtx()};     // of the caller's thread
  std::vector<std::jthread> threads;  // last: joined first

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    has_work.notify_all();
  }

  void work() {
    const Context context(ZSTD_createDCtx());
    if (context == nullptr) return;  // no workers: the caller's thread inflates everything
    std::unique_lock lock(mutex);
    for (;;) {
      has_work.wait(lock, [&] { return stopping || !waiting.empty(); });
      if (stopping) return;
      const JobRef job = std::move(waiting.front());
      waiting.pop_front();
      run(*job, context.get(), Job::Memory::ReadersLast, lock);
    }
  }

  void run(Job& job, ZSTD_DCtx* context, Job::Memory memory, std::unique_lock<std::mutex>& lock) {
    job.stage = Job::Stage::Running;
    lock.unlock();
    job.run(context, memory);
    lock.lock();
    job.stage = Job::Stage::Done;
    has_result.notify_all();
  }
};

InflateAhead::InflateAhead() : state_(std::make_unique<State>()) {
  const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < std::min(cpus, kMaxThreads); ++i) {
    try {
      state_->threads.emplace_back([state = state_.get()] { state->work(); });
    } catch (const std::system_error&) {
      break;  // no thread could be made: the caller's thread inflates, with the same result
    }
  }
}
InflateAhead::InflateAhead(InflateAhead&&) noexcept = default;
InflateAhead& InflateAhead::operator=(InflateAhead&&) noexcept = default;
InflateAhead::~InflateAhead() = default;

InflateAhead::JobRef InflateAhead::start(Bytes packed, std::size_t size, BlockRef keep) {
  auto job = std::make_shared<Job>(packed, size, std::move(keep));
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back(job);
  }
  state_->has_work.notify_one();
  return job;
}

Result<std::shared_ptr<Block>> InflateAhead::take_block(const JobRef& job) {
  std::unique_lock lock(state_->mutex);
  if (job->stage == Job::Stage::Waiting) {
    std::erase(state_->waiting, job);
    state_->run(*job, state_->own.get(), Job::Memory::Own, lock);
  }
  // A worker inflates this frame. Inflate later frames meanwhile: to sleep and wake up takes as long.
  while (job->stage != Job::Stage::Done && !state_->waiting.empty()) {
    const JobRef other = std::move(state_->waiting.front());
    state_->waiting.pop_front();
    state_->run(*other, state_->own.get(), Job::Memory::Own, lock);
  }
  state_->has_result.wait(lock, [&] { return job->stage == Job::Stage::Done; });
  return job->take_result();
}

}  // namespace tacho::format
