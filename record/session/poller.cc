#include "record/session/poller.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tacho::record {
namespace {

// The owner of an epoll entry's descriptor.
enum class Source : std::uint32_t { Ring, Signals, Command, Control, Writer, Reader, Channel, Switch };
std::uint64_t tag(Source source, std::size_t index = 0) {
  return static_cast<std::uint64_t>(source) << 32 | index;
}

}  // namespace

Result<> Poller::watch(KernelEvents& events, const Descriptors& descriptors) {
  epoll_ = format::Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return system_error("epoll", errno);
  if (auto done = watch_rings(events); !done) return done;
  // Edge-triggered, since every pass reads all of them.
  for (const int channel : descriptors.channels)
    if (auto done = watch_fd(channel, tag(Source::Channel), EPOLLIN | EPOLLET); !done) return done;
  for (const int event : descriptors.switches)
    if (auto done = watch_fd(event, tag(Source::Switch), EPOLLIN | EPOLLET); !done) return done;
  if (auto done = watch_fd(descriptors.signals, tag(Source::Signals)); !done) return done;
  if (auto done = watch_fd(descriptors.writer, tag(Source::Writer)); !done) return done;
  // Without requested events: epoll always reports EPOLLERR, for a pipe without a reader.
  if (auto done = watch_fd(descriptors.reader, tag(Source::Reader), 0); !done) return done;
  // A child of the view that waits for a file system keeps the pipe open, even when it was killed.
  if (auto done = watch_fd(descriptors.view, tag(Source::Reader), EPOLLIN | EPOLLONESHOT); !done) return done;
  control_ = descriptors.control;
  if (auto done = watch_fd(descriptors.control, tag(Source::Control)); !done)
    return std::move(done.error()).in("--control");
  // Without a pidfd the end of the command is noticed after the longest wait.
  return watch_fd(descriptors.command, tag(Source::Command));
}

Result<> Poller::watch_rings(KernelEvents& events) {
  ring_watches_.resize(events.rings().size());
  for (const OpenEvent& event : events.open_events()) {
    RingWatch& watch = ring_watches_[event.ring];
    // Chooses an event of the ring whose descriptor reports the end of its tasks.
    if (watch.fds.empty() || (watch.system_wide && event.task >= 0))
      watch = {event.event, {}, 0, event.task < 0};
    if (watch.event == event.event) watch.fds.push_back(event.fd.get());
  }
  for (std::size_t ring = 0; ring < ring_watches_.size(); ++ring) {
    // Overwritten rings cause no wakeups.
    if (events.rings()[ring].kind() == RingKind::Backward) continue;
    if (!ring_watches_[ring].system_wide) ++live_rings_;
    if (auto done = watch_fd(ring_watches_[ring].fds.front(), tag(Source::Ring, ring)); !done) return done;
  }
  return Done{};
}

// The ring's owner keeps the event and its descriptor open.
Result<> Poller::watch_reopened(const OpenEvent& event) {
  if (event.ring < ring_watches_.size() || !later_rings_.insert(event.ring).second) return Done{};
  return watch_fd(event.fd.get(), tag(Source::Ring, event.ring));
}

Result<> Poller::watch_fd(int fd, std::uint64_t data, std::uint32_t what) {
  if (fd < 0) return Done{};
  epoll_event event{};
  event.events = what;
  event.data.u64 = data;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Done{};
  return system_error("epoll", errno);
}

Result<> Poller::remove(int fd) {
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0) return Done{};
  return system_error("epoll", errno);
}

Result<> Poller::stop_watching_control() { return remove(std::exchange(control_, -1)); }

Result<Poller::Ready> Poller::wait(std::chrono::milliseconds patience) {
  std::array<epoll_event, 16> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(patience.count()));
  if (count < 0 && errno != EINTR) return system_error("epoll", errno);
  Ready ready;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    switch (static_cast<Source>(event.data.u64 >> 32)) {
      case Source::Ring:
        ready.rings |= (event.events & EPOLLIN) != 0;
        if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) {
          if (auto done = task_ended(static_cast<std::uint32_t>(event.data.u64), ready); !done)
            return std::move(done.error());
        }
        break;
      case Source::Signals:
        ready.signals = true;
        break;
      case Source::Control:
        ready.control = true;
        break;
      case Source::Writer:
        ready.writer = true;
        break;
      case Source::Reader:
        ready.reader_gone = true;
        break;
      case Source::Channel:
        ready.rings = true;
        break;
      case Source::Switch:
        ready.switches = true;
        break;
      case Source::Command:
        break;
    }
  }
  return ready;
}

// The task whose descriptor was watched for this ring has ended: watches another task's.
Result<> Poller::task_ended(std::size_t ring, Ready& ready) {
  if (ring >= ring_watches_.size()) return Done{};  // the ring of a reopened CPU, not of a task
  RingWatch& ended = ring_watches_[ring];
  if (ended.watched >= ended.fds.size()) return Done{};
  // A descriptor of an ended task is always ready: with it the loop would never sleep.
  if (auto done = remove(ended.fds[ended.watched]); !done) return done;
  if (++ended.watched < ended.fds.size()) return watch_fd(ended.fds[ended.watched], tag(Source::Ring, ring));
  ready.last_task_ended |= --live_rings_ == 0;
  return Done{};
}

}  // namespace tacho::record
