#include "format/inflate_ahead.h"

#include <zstd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tacho::format {

namespace {

constexpr unsigned kMaxThreads = 4;  // more only wait for the one reader

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};
using Context = std::unique_ptr<ZSTD_DCtx, FreeContext>;

}  // namespace

std::optional<std::size_t> standalone_frame_size(Bytes packed, std::size_t limit) {
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size == 0 || size > limit)
    return std::nullopt;
  const std::size_t whole = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  if (ZSTD_isError(whole) != 0 || whole != packed.size()) return std::nullopt;
  return static_cast<std::size_t>(size);
}

class InflateAhead::Job {
 public:
  Job(Bytes packed, std::size_t size, BlockRef keep) : packed_(packed), size_(size), keep_(std::move(keep)) {}

  void run(ZSTD_DCtx* context) {
    auto block = std::make_shared<Block>();
    block->bytes.resize(size_);
    const std::size_t got =
        ZSTD_decompressDCtx(context, block->bytes.data(), size_, packed_.data(), packed_.size());
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
  Bytes packed_;
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
    std::unique_lock lock(mutex);
    for (;;) {
      has_work.wait(lock, [&] { return stopping || !waiting.empty(); });
      if (stopping) return;
      const JobRef job = std::move(waiting.front());
      waiting.pop_front();
      run(*job, context.get(), lock);
    }
  }

  void run(Job& job, ZSTD_DCtx* context, std::unique_lock<std::mutex>& lock) {
    job.stage = Job::Stage::Running;
    lock.unlock();
    job.run(context);
    lock.lock();
    job.stage = Job::Stage::Done;
    has_result.notify_all();
  }
};

InflateAhead::InflateAhead() : state_(std::make_unique<State>()) {
  const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < std::min(cpus, kMaxThreads); ++i)
    state_->threads.emplace_back([state = state_.get()] { state->work(); });
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

Result<std::shared_ptr<Block>> InflateAhead::take(const JobRef& job) {
  std::unique_lock lock(state_->mutex);
  if (job->stage == Job::Stage::Waiting) {
    std::erase(state_->waiting, job);
    state_->run(*job, state_->own.get(), lock);
  }
  state_->has_result.wait(lock, [&] { return job->stage == Job::Stage::Done; });
  return job->take_result();
}

}  // namespace tacho::format
