// Reads what belongs to other processes: their files, their memory, their /proc/PID/maps.
//
// A file system (FUSE, NFS), a userfaultfd or a lock of the kernel may make such a read wait for ever, and no
// signal ends a process with a thread that waits so (state D). So children do it, which can be given up: a
// child has no descriptor but its socket, no memory of the recording, and only the rights that reading needs.
// What does not answer in time is not asked again for a while; another child serves the next request.
//
//   const auto reader = ForeignReader::start();     // early in main(): it forks
//   auto file = reader->open_file({"/proc/7/root", "/lib/libfoo.so"}, scope);   // open in a child
//   if (file) auto bytes = file->read_bytes(0, 64);
//
// ForeignFile::read_bytes() and the others give up after a second without a byte (error ETIMEDOUT). Any
// thread may call the functions of ForeignReader; a ForeignFile belongs to one thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "record/host/foreign_file.h"
#include "record/host/host.h"

namespace tacho::record {

class ForeignReader;

// A process that reads. One thread at a time asks it one thing at a time.
struct ReadingChild {
  format::Fd socket;
  pid_t pid = -1;
};

// A file that is open in a child of a ForeignReader.
class ForeignFile {
 public:
  ForeignFile(ForeignFile&& other) noexcept;
  ForeignFile& operator=(ForeignFile&&) = delete;
  ~ForeignFile();

  const struct stat& status() const { return status_; }
  // The file's generation (FS_IOC_GETVERSION), if its file system has one.
  std::optional<std::uint32_t> generation() const { return generation_; }
  // The path that a link of the kernel ("/proc/7/map_files/1000-2000") shows; empty for other paths.
  const std::string& target() const { return target_; }

  // At most `size` bytes from `offset`; fewer only at the end of the file.
  Result<std::vector<std::byte>> read_bytes(std::uint64_t offset, std::size_t size);
  // An O_PATH descriptor of the file for this process: it keeps a deleted file, and closing it never waits.
  // To read the file, open /proc/self/fd/N, which may wait.
  Result<format::Fd> pin();

 private:
  friend class ForeignReader;
  ForeignFile(std::shared_ptr<ForeignReader> reader, std::unique_ptr<ReadingChild> child, std::string scope,
              std::string name);

  std::shared_ptr<ForeignReader> reader_;
  std::unique_ptr<ReadingChild> child_;  // null: it was given up
  std::string scope_, name_;
  struct stat status_ {};
  std::optional<std::uint32_t> generation_;
  std::string target_;
};

class ForeignReader : public std::enable_shared_from_this<ForeignReader> {
 public:
  // Forks the process that starts the children; it is a copy of this one. Call it before threads are made.
  // `rights`: the children's.
  static std::shared_ptr<ForeignReader> start(std::chrono::milliseconds patience = std::chrono::seconds(1),
                                              const LaterWork& rights = {.holds_files = true});
  ForeignReader(const ForeignReader&) = delete;
  ForeignReader& operator=(const ForeignReader&) = delete;
  ~ForeignReader();

  // Why nothing can be read; empty: it can.
  const std::string& failure() const { return failure_; }

  // A file of a process, open_foreign(). `scope`: scope_of_file(). `name`: as its process names it, for
  // silent(); empty: the path.
  Result<ForeignFile> open_file(const ForeignPath& path, const std::string& scope, std::string name = {});
  // The first `size` bytes of a file.
  Result<std::vector<std::byte>> head_of(const ForeignPath& path, std::size_t size, const std::string& scope,
                                         std::string name = {});
  // A text of /proc, as /proc/7/maps: locks of the process may hold up its reader. Empty: it cannot be read.
  std::string text_of(const std::string& path);
  // Whether it can be read, or not, in time.
  bool answers(const std::string& path);
  // What a link of /proc shows, as /proc/7/fd/3; empty: it cannot be read.
  std::string link_of(const std::string& path);
  // Memory of a thread's process, at most `size` bytes; fewer if a mapping ends.
  Result<std::vector<std::byte>> memory_of(std::uint32_t thread, std::uint64_t address, std::size_t size);

  // For anything else that may wait: a child calls the function with this argument, and sends back what it
  // returns. A scope that did not answer `most_silences` times is not asked again for a while. `name`: for
  // messages and silent().
  using Work = Result<std::vector<std::byte>> (*)(format::Bytes argument);
  Result<std::vector<std::byte>> run_work(Work work, format::Bytes argument, const std::string& scope,
                                          const std::string& name, int most_silences = 1);

  // What did not answer, each once: "/mnt/libfoo.so", "the memory of thread 7".
  std::vector<std::string> silent() const;
  // Whether a process is one of the children.
  bool is_own(pid_t process) const;

 private:
  friend class ForeignFile;
  struct Silence {
    int times = 0;
    std::chrono::steady_clock::time_point since;  // the last time
  };
  explicit ForeignReader(std::chrono::milliseconds patience) : patience_(patience) {}
  std::unique_ptr<ReadingChild> take_child();
  void give_back(std::unique_ptr<ReadingChild> child);
  void give_up(std::unique_ptr<ReadingChild>& child, const std::string& scope, const std::string& name,
               std::chrono::milliseconds waited);
  bool is_silent(const std::string& scope, int most);
  std::chrono::milliseconds waited_in_vain(std::chrono::steady_clock::time_point now) const;
  std::chrono::milliseconds patience() const;
  // Sends a request and takes the answer. After a timeout the child is given up.
  Result<std::vector<std::byte>> ask(std::unique_ptr<ReadingChild>& child, std::uint32_t what, Work work,
                                     format::Bytes argument, const std::string& scope,
                                     const std::string& name, format::Fd* passed = nullptr);

  const std::chrono::milliseconds patience_;
  std::string failure_;
  format::Fd starter_;  // socket of the process that starts children
  pid_t starter_pid_ = -1;

  mutable std::mutex mutex_;  // guards all members below
  std::vector<std::unique_ptr<ReadingChild>> idle_;
  std::vector<pid_t> pids_;                // of children that are not given up
  std::vector<pid_t> given_up_;            // children that may still wait
  std::map<std::string, Silence> silent_;  // by scope
  std::vector<std::string> names_;         // for silent()
  std::chrono::milliseconds waited_{0};    // in vain
  std::chrono::steady_clock::time_point last_wait_;
};

// For work in a child: memory of a thread's process, as memory_of() returns it.
Result<std::vector<std::byte>> read_memory(std::uint32_t thread, std::uint64_t address, std::size_t size);

}  // namespace tacho::record
