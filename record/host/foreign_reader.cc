#include "record/host/foreign_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include "format/base/byte_writer.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Answer = Result<std::vector<std::byte>>;

constexpr int kMostSilences = 2;  // of one scope
// From kMostSilences on, a scope that did not answer N times is not asked for kRest * 2^N: 1.4 hours at most.
constexpr std::chrono::seconds kRest{10};
constexpr int kMostDoublings = 9;
constexpr std::size_t kMostGivenUp = 16, kMostScopes = 4096, kMostNames = 64, kMostIdle = 4;
constexpr milliseconds kMostWaiting{5000}, kLeastPatience{100};
constexpr std::chrono::seconds kStartPatience{2};
constexpr std::chrono::seconds kBusyPatience{10};  // for a child that runs, or waits for a CPU
constexpr std::size_t kPiece = std::size_t{256} << 10, kMostPiece = std::size_t{1} << 20;
constexpr std::uint64_t kMostText = std::uint64_t{1} << 28;  // bytes of a text of /proc

// Requests. Both processes have the same code at the same addresses: Run names a function by its address.
enum What : std::uint32_t { kRun, kOpen, kRead, kPin, kClose };
struct RequestHead {
  std::uint32_t what = kRun, size = 0;  // bytes that follow
  ForeignReader::Work work = nullptr;
};
// Answers come in pieces; after a piece of zero bytes the answer is whole.
struct AnswerHead {
  std::uint32_t size = 0;  // bytes that follow
  std::int32_t code = 0;   // errno of an error
  bool is_error = false;   // the bytes are its text
};
struct OpenedFacts {
  struct stat status {};
  std::uint32_t generation = 0;
  bool has_generation = false;
};

// False: the other process is gone.
bool send_all(int to, const void* bytes, std::size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t sent = TEMP_FAILURE_RETRY(::send(to, at, size, MSG_NOSIGNAL));
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int from, void* bytes, std::size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size != 0) {
    const ssize_t got = TEMP_FAILURE_RETRY(::recv(from, at, size, 0));
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

// One byte with a descriptor.
bool send_descriptor(int to, int descriptor) {
  char letter = 0;
  iovec part{&letter, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return TEMP_FAILURE_RETRY(::sendmsg(to, &message, MSG_NOSIGNAL)) == 1;
}

// Nothing: the other process is gone.
format::Fd receive_descriptor(int from) {
  char letter = 0;
  iovec part{&letter, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  if (TEMP_FAILURE_RETRY(::recvmsg(from, &message, MSG_CMSG_CLOEXEC)) != 1) return {};
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int))) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  return format::Fd(descriptor);
}

void put_path(format::ByteWriter& out, const ForeignPath& path) {
  out.u64(path.inode).padded_text(path.root, 1).padded_text(path.path, 1);
}
ForeignPath take_path(format::Cursor& in) {
  ForeignPath path;
  path.inode = in.u64();
  path.root = format::text_of(in.rest());
  in.skip(path.root.size() + 1);
  path.path = format::text_of(in.rest());
  in.skip(path.path.size() + 1);
  return path;
}

// The part of a child: answers requests, one after the other, until the socket is closed.
class ForeignServer {
 public:
  explicit ForeignServer(int socket) : socket_(socket) {}

  [[noreturn]] void run() {
    RequestHead head;
    while (receive_all(socket_, &head, sizeof head)) {
      std::vector<std::byte> argument(head.size);
      if (!receive_all(socket_, argument.data(), argument.size())) break;
      Result<> done = Done{};
      try {
        done = serve(head, format::Cursor(argument));
      } catch (const std::bad_alloc&) {
        done = Error{"there is no memory for it", ENOMEM};
      }
      if (!(done ? put({}) : put_error(done.error()))) break;
      if (head.what == kPin && done && !send_descriptor(socket_, found_.path_fd.get())) break;
    }
    ::_exit(0);
  }

 private:
  bool put(format::Bytes bytes) const {
    const AnswerHead head{static_cast<std::uint32_t>(bytes.size()), 0, false};
    return send_all(socket_, &head, sizeof head) && send_all(socket_, bytes.data(), bytes.size());
  }
  bool put_error(const Error& error) const {
    const AnswerHead head{static_cast<std::uint32_t>(error.what.size()), error.code, true};
    return send_all(socket_, &head, sizeof head) && send_all(socket_, error.what.data(), error.what.size());
  }

  Result<> serve(const RequestHead& head, format::Cursor argument) {
    switch (head.what) {
      case kRun:
        return call(head.work, argument.rest());
      case kOpen:
        return open(argument);
      case kRead:
        return read(argument);
      case kClose:
        opened_ = {};
        found_ = {};
        return Done{};
      default:
        return Done{};
    }
  }

  Result<> call(ForeignReader::Work work, format::Bytes argument) {
    auto bytes = work(argument);
    if (!bytes) return std::move(bytes.error());
    for (format::Bytes rest(*bytes); !rest.empty(); rest = rest.subspan(std::min(rest.size(), kPiece)))
      if (!put(rest.first(std::min(rest.size(), kPiece)))) ::_exit(0);
    return Done{};
  }

  Result<> open(format::Cursor argument) {
    const ForeignPath path = take_path(argument);
    auto found = find_foreign(path);
    if (!found) return std::move(found.error());
    auto opened = open_found(*found, path.root + path.path);
    if (!opened) return std::move(opened.error());
    OpenedFacts facts{.status = found->status};
    long generation = 0;  // the kernel writes an int
    facts.has_generation = ::ioctl(opened->get(), FS_IOC_GETVERSION, &generation) == 0;
    facts.generation = static_cast<std::uint32_t>(generation);
    std::array<char, PATH_MAX> target{};
    ssize_t length = 0;
    if (path.root.empty()) length = ::readlink(path.path.c_str(), target.data(), target.size());
    format::ByteWriter out;
    out.bytes(std::as_bytes(std::span(&facts, 1)));
    out.bytes(std::as_bytes(std::span(target).first(static_cast<std::size_t>(std::max<ssize_t>(length, 0)))));
    found_ = std::move(*found);
    opened_ = std::move(*opened);
    if (!put(out.view())) ::_exit(0);
    return Done{};
  }

  Result<> read(format::Cursor argument) {
    std::uint64_t offset = argument.u64(), left = argument.u64();
    while (left != 0) {
      const auto bytes = format::read_at(opened_.get(), offset,
                                         static_cast<std::size_t>(std::min<std::uint64_t>(left, kPiece)));
      if (!bytes) return bytes.error();
      if (bytes->empty()) break;
      if (!put(*bytes)) ::_exit(0);
      offset += bytes->size();
      left -= bytes->size();
    }
    return Done{};
  }

  int socket_;
  FoundFile found_;
  format::Fd opened_;
};

// Closes all descriptors but `kept`; standard input, output and errors become /dev/null.
void keep_only(int kept) {
  const auto number = static_cast<unsigned>(kept);
  const bool is_done = (number == 0 || ::syscall(SYS_close_range, 0U, number - 1, 0U) == 0) &&
                       ::syscall(SYS_close_range, number + 1, ~0U, 0U) == 0;
  if (!is_done)  // before Linux 5.9
    for (int one = 0; one < static_cast<int>(::sysconf(_SC_OPEN_MAX)); ++one)
      if (one != kept) ::close(one);
  for (int one = 0; one < 3; ++one)
    if (one != kept) (void)::dup2(::open("/dev/null", O_RDWR | O_CLOEXEC), one);
}

// The process that starts children: for each socket that it gets, one that serves there. It waits for nothing
// but its own socket.
[[noreturn]] void start_children(int control, const LaterWork& rights) {
  // Not reached by signals of the terminal: it ends with the recorder.
  (void)::setpgid(0, 0);
  (void)::prctl(PR_SET_NAME, "tacho-reader");
  (void)!::chdir("/");
  sigset_t none;
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)std::signal(SIGCHLD, SIG_IGN);
  keep_only(control);
  const auto dropped = drop_rights(rights, "");
  const std::string failure =
      dropped ? std::string() : "its rights cannot be dropped: " + dropped.error().what;
  const AnswerHead hello{static_cast<std::uint32_t>(failure.size()), 0, !failure.empty()};
  if (!send_all(control, &hello, sizeof hello) || !send_all(control, failure.data(), failure.size()) ||
      !failure.empty())
    ::_exit(0);
  for (;;) {
    const format::Fd socket = receive_descriptor(control);
    if (!socket) {
      // Not every container has an init that reaps its children.
      while (::wait(nullptr) > 0 || errno == EINTR) continue;
      ::_exit(0);
    }
    if (::fork() != 0) continue;  // or it failed: then the socket is closed
    ::close(control);
    (void)std::signal(SIGCHLD, SIG_DFL);
    const pid_t own = ::getpid();
    if (!send_all(socket.get(), &own, sizeof own)) ::_exit(0);
    ForeignServer(socket.get()).run();
  }
}

enum class Wait : std::uint8_t { Readable, Closed, TimedOut };

// The state letter of /proc/PID/stat; 0: it is gone.
char state_of_process(pid_t process) {
  const std::string stat = text_of_file(fmt::format("/proc/{}/stat", process));
  const auto name_end = stat.rfind(") ");  // the name may contain anything
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '\0' : stat[name_end + 2];
}

Wait wait_readable(int socket, milliseconds patience, pid_t child) {
  auto until = Clock::now() + patience;
  const auto last = Clock::now() + kBusyPatience;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    pollfd news{socket, POLLIN, 0};
    const int got = ::poll(&news, 1, static_cast<int>(std::max<milliseconds::rep>(left.count(), 0)));
    if (got > 0) return (news.revents & POLLIN) != 0 ? Wait::Readable : Wait::Closed;
    if (got < 0 && errno != EINTR) return Wait::Closed;
    if (got < 0 || Clock::now() < until) continue;
    // It waits for a CPU, and not for the file: this machine is busy. Or it has answered meanwhile.
    const bool is_busy = child > 0 && state_of_process(child) == 'R' && Clock::now() < last;
    if (!is_busy && ::poll(&news, 1, 0) <= 0) return Wait::TimedOut;
    until = Clock::now() + patience;
  }
}

}  // namespace

std::shared_ptr<ForeignReader> ForeignReader::start(milliseconds patience, const LaterWork& rights) {
  std::shared_ptr<ForeignReader> reader(new ForeignReader(patience));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    reader->failure_ = system_error("a socket", errno).what;
    return reader;
  }
  reader->starter_ = format::Fd(ends[0]);
  format::Fd other(ends[1]);
  reader->starter_pid_ = ::fork();
  if (reader->starter_pid_ == 0) start_children(other.get(), rights);
  other = {};  // so that its death ends the wait below
  if (reader->starter_pid_ < 0) {
    reader->failure_ = system_error("fork", errno).what;
    return reader;
  }
  AnswerHead hello;
  std::string failure = "the process that starts readers died";
  if (wait_readable(reader->starter_.get(), kStartPatience, reader->starter_pid_) == Wait::Readable &&
      receive_all(reader->starter_.get(), &hello, sizeof hello)) {
    failure.resize(hello.size);
    (void)receive_all(reader->starter_.get(), failure.data(), failure.size());
  }
  reader->failure_ = failure;
  return reader;
}

ForeignReader::~ForeignReader() {
  idle_.clear();
  starter_ = {};
  if (starter_pid_ <= 0) return;
  // It ends at once, unless something stopped it: then it is left.
  constexpr int kLooks = 200;
  for (int look = 0; look < kLooks && ::waitpid(starter_pid_, nullptr, WNOHANG) == 0; ++look)
    (void)::poll(nullptr, 0, 1);
}

// Null: there is none.
std::unique_ptr<ReadingChild> ForeignReader::take_child() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    auto child = std::move(idle_.back());
    idle_.pop_back();
    return child;
  }
  std::array<int, 2> ends{};
  if (!failure_.empty() || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return nullptr;
  auto child = std::make_unique<ReadingChild>();
  child->socket = format::Fd(ends[0]);
  format::Fd other(ends[1]);
  // For a child that is stopped in the middle of an answer.
  const timeval most{kStartPatience.count(), 0};
  (void)::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  (void)::setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  if (!send_descriptor(starter_.get(), other.get())) return nullptr;
  other = {};  // so that a fork that fails ends the wait below
  if (wait_readable(child->socket.get(), kStartPatience, starter_pid_) != Wait::Readable ||
      !receive_all(child->socket.get(), &child->pid, sizeof child->pid))
    return nullptr;
  pids_.push_back(child->pid);
  return child;
}

void ForeignReader::give_back(std::unique_ptr<ReadingChild> child) {
  if (!child) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) return idle_.push_back(std::move(child));
  std::erase(pids_, child->pid);
}

// The child ends when its wait does: SIGKILL ends a wait for a userfaultfd or a lock, but not for a file
// system.
void ForeignReader::give_up(std::unique_ptr<ReadingChild>& child, const std::string& scope,
                            const std::string& name, milliseconds waited) {
  ::kill(child->pid, SIGKILL);
  const std::lock_guard lock(mutex_);
  std::erase(pids_, child->pid);
  given_up_.push_back(child->pid);
  child.reset();
  const auto now = Clock::now();
  if (silent_.size() >= kMostScopes) silent_.clear();
  Silence& silence = silent_[scope];
  ++silence.times;
  silence.since = now;
  waited_ = waited_in_vain(now) + waited;
  last_wait_ = now;
  if (names_.size() < kMostNames && std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
}

// Of waits in vain, 50 ms are forgiven each second.
milliseconds ForeignReader::waited_in_vain(Clock::time_point now) const {
  constexpr int kRecovery = 20;
  const auto recovered = std::chrono::duration_cast<milliseconds>(now - last_wait_) / kRecovery;
  return std::max(waited_ - recovered, milliseconds(0));
}

milliseconds ForeignReader::patience() const {
  const std::lock_guard lock(mutex_);
  return waited_in_vain(Clock::now()) < kMostWaiting ? patience_ : std::min(patience_, kLeastPatience);
}

bool ForeignReader::is_silent(const std::string& scope, int most) {
  const std::lock_guard lock(mutex_);
  if (given_up_.empty() && silent_.empty()) return false;
  if (const auto known = silent_.find(scope); known != silent_.end() && known->second.times >= most) {
    const auto rest = kRest * (1 << std::min(known->second.times, kMostDoublings));
    if (Clock::now() - known->second.since < rest) return true;
  }
  std::erase_if(given_up_, [](pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; });
  return given_up_.size() >= kMostGivenUp;
}

std::vector<std::string> ForeignReader::silent() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

bool ForeignReader::is_own(pid_t process) const {
  const std::lock_guard lock(mutex_);
  return process == starter_pid_ || std::ranges::find(pids_, process) != pids_.end() ||
         std::ranges::find(given_up_, process) != given_up_.end();
}

Answer ForeignReader::ask(std::unique_ptr<ReadingChild>& child, std::uint32_t what, Work work,
                          format::Bytes argument, const std::string& scope, const std::string& name,
                          format::Fd* passed) {
  const auto silent = [&name] { return Error{name + " does not answer", ETIMEDOUT}; };
  if (!child) return silent();
  const auto died = [&] {
    const std::lock_guard lock(mutex_);
    std::erase(pids_, child->pid);
    child.reset();
    return Error{name + ": the process that read it died", EIO};
  };
  const int socket = child->socket.get();
  const milliseconds patience = this->patience();
  // Waits for the next bytes of the answer. An error if none come.
  const auto comes = [&]() -> Result<> {
    const Wait wait = wait_readable(socket, patience, child->pid);
    if (wait == Wait::Readable) return Done{};
    if (wait == Wait::Closed) return died();
    give_up(child, scope, name, patience);
    return silent();
  };
  const RequestHead request{what, static_cast<std::uint32_t>(argument.size()), work};
  if (!send_all(socket, &request, sizeof request) || !send_all(socket, argument.data(), argument.size()))
    return died();
  std::vector<std::byte> answer;
  for (;;) {
    if (auto done = comes(); !done) return std::move(done.error());
    AnswerHead head;
    if (!receive_all(socket, &head, sizeof head) || head.size > kMostPiece) return died();
    const std::size_t before = answer.size();
    answer.resize(before + head.size);
    if (!receive_all(socket, answer.data() + before, head.size)) return died();
    if (head.is_error)
      return Error{std::string(format::as_text(format::Bytes(answer).subspan(before))), head.code};
    if (head.size == 0) break;
  }
  if (passed == nullptr) return answer;
  if (auto done = comes(); !done) return std::move(done.error());
  *passed = receive_descriptor(socket);
  return *passed ? Answer(std::move(answer)) : died();
}

Answer ForeignReader::run_work(Work work, format::Bytes argument, const std::string& scope,
                               const std::string& name, int most_silences) {
  if (is_silent(scope, most_silences)) return Error{name + " does not answer", ETIMEDOUT};
  auto child = take_child();
  if (!child) return Error{"no process that reads it can be started", EAGAIN};
  auto answer = ask(child, kRun, work, argument, scope, name);
  give_back(std::move(child));
  return answer;
}

namespace {

// In a child.
Answer read_head(format::Bytes argument) {
  format::Cursor in(argument);
  const auto size = static_cast<std::size_t>(in.u64());
  const auto file = open_foreign(take_path(in));
  return file ? format::read_at(file->get(), 0, size) : file.error();
}

Answer read_text(format::Bytes argument) {
  return format::read_file(std::string(format::as_text(argument)), kMostText);
}

Answer read_link(format::Bytes path) {
  std::vector<std::byte> target(PATH_MAX);
  const ssize_t size = ::readlink(std::string(format::as_text(path)).c_str(),
                                  reinterpret_cast<char*>(target.data()), target.size());
  if (size < 0) return system_error("readlink", errno);
  target.resize(static_cast<std::size_t>(size));
  return target;
}

Answer read_memory_of(format::Bytes argument) {
  format::Cursor in(argument);
  const std::uint32_t thread = in.u32();
  const std::uint64_t address = in.u64();
  return read_memory(thread, address, static_cast<std::size_t>(in.u64()));
}

}  // namespace

Result<std::vector<std::byte>> read_memory(std::uint32_t thread, std::uint64_t address, std::size_t size) {
  std::vector<std::byte> bytes(size);
  iovec to{bytes.data(), bytes.size()};
  // Page by page: process_vm_readv(2) gives nothing of an iovec in which a page is missing.
  constexpr std::uint64_t kPage = 4096;
  std::vector<iovec> from;
  for (std::uint64_t at = address, left = size; left != 0;) {
    const std::uint64_t piece = std::min(left, kPage - at % kPage);
    from.push_back({reinterpret_cast<void*>(at), piece});  // NOLINT: of another process
    at += piece;
    left -= piece;
  }
  const ssize_t got = ::process_vm_readv(static_cast<pid_t>(thread), &to, 1, from.data(), from.size(), 0);
  if (got < 0) return system_error("its memory cannot be read", errno);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

namespace {

std::string name_of(const ForeignPath& path, std::string name) {
  if (!name.empty()) return name;
  return path.root == "/" ? path.path : path.root + path.path;
}

}  // namespace

Result<ForeignFile> ForeignReader::open_file(const ForeignPath& path, const std::string& scope,
                                             std::string name) {
  name = name_of(path, std::move(name));
  if (is_silent(scope, kMostSilences)) return Error{name + " does not answer", ETIMEDOUT};
  auto child = take_child();
  if (!child) return Error{"no process that reads it can be started", EAGAIN};
  format::ByteWriter argument;
  put_path(argument, path);
  auto answer = ask(child, kOpen, nullptr, argument.view(), scope, name);
  OpenedFacts facts;
  if (answer && answer->size() < sizeof facts)
    answer = Error{"the answer about " + name + " is not understood"};
  if (!answer) {
    give_back(std::move(child));
    return std::move(answer.error());
  }
  ForeignFile file(shared_from_this(), std::move(child), scope, name);
  std::memcpy(&facts, answer->data(), sizeof facts);
  file.status_ = facts.status;
  if (facts.has_generation) file.generation_ = facts.generation;
  file.target_ = format::as_text(format::Bytes(*answer).subspan(sizeof facts));
  return file;
}

Answer ForeignReader::head_of(const ForeignPath& path, std::size_t size, const std::string& scope,
                              std::string name) {
  name = name_of(path, std::move(name));
  format::ByteWriter argument;
  argument.u64(size);
  put_path(argument, path);
  return run_work(read_head, argument.view(), scope, name, kMostSilences);
}

std::string ForeignReader::text_of(const std::string& path) {
  const auto text = run_work(read_text, std::as_bytes(std::span(path)), path, path);
  return text ? std::string(format::as_text(*text)) : std::string();
}

std::string ForeignReader::link_of(const std::string& path) {
  const auto target = run_work(read_link, std::as_bytes(std::span(path)), path, path);
  return target ? std::string(format::as_text(*target)) : std::string();
}

bool ForeignReader::answers(const std::string& path) {
  const auto text = run_work(read_text, std::as_bytes(std::span(path)), path, path);
  return text || text.error().code != ETIMEDOUT;
}

Answer ForeignReader::memory_of(std::uint32_t thread, std::uint64_t address, std::size_t size) {
  format::ByteWriter argument;
  argument.u32(thread).u64(address).u64(size);
  const std::string name = fmt::format("the memory of thread {}", thread);
  return run_work(read_memory_of, argument.view(), name, name);
}

ForeignFile::ForeignFile(std::shared_ptr<ForeignReader> reader, std::unique_ptr<ReadingChild> child,
                         std::string scope, std::string name)
    : reader_(std::move(reader)),
      child_(std::move(child)),
      scope_(std::move(scope)),
      name_(std::move(name)) {}

ForeignFile::ForeignFile(ForeignFile&& other) noexcept = default;

// Closing a file may wait for its file system as well.
ForeignFile::~ForeignFile() {
  if (!child_) return;
  (void)reader_->ask(child_, kClose, nullptr, {}, scope_, name_);
  reader_->give_back(std::move(child_));
}

Answer ForeignFile::read_bytes(std::uint64_t offset, std::size_t size) {
  format::ByteWriter argument;
  argument.u64(offset).u64(size);
  return reader_->ask(child_, kRead, nullptr, argument.view(), scope_, name_);
}

Result<format::Fd> ForeignFile::pin() {
  format::Fd descriptor;
  const auto answer = reader_->ask(child_, kPin, nullptr, {}, scope_, name_, &descriptor);
  return answer ? Result<format::Fd>(std::move(descriptor)) : answer.error();
}

}  // namespace tacho::record
