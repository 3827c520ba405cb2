// Finds the symbol list (kallsyms) of the recorded kernel, which a background thread reads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "symbolize/address_space.h"
#include "symbolize/names/symbol_lists.h"
#include "symbolize/symbol_options.h"

namespace tacho::symbolize {

// Reads a file on a background thread: the kernel takes some 50 ms to print /proc/kallsyms.

class FileAhead {
 public:
  using Content = std::vector<std::byte>;

  // Begins to read; at most `limit` bytes. Where the system gives no thread, next() reads.
  FileAhead(std::string path, std::uint64_t limit);
  FileAhead(const FileAhead&) = delete;
  FileAhead& operator=(const FileAhead&) = delete;

  // The next piece of the content, as soon as it is there; an empty one at the end and from then on. After an
  // error there is no more.
  Result<Content> next();

 private:
  void read(const std::stop_token& stop);
  void put(Content piece);
  void end(Result<> how);

  std::string path_;
  std::uint64_t limit_;
  std::mutex mutex_;  // guards the next three
  std::condition_variable changed_;
  std::deque<Content> pieces_;
  Result<> how_ = Done{};  // it ended
  bool has_ended_ = false;
  std::jthread thread_;  // the last member: it uses the others
};

// Finds the symbol list (kallsyms) of the recorded kernel.

class KernelNames {
 public:
  // All must outlive it.
  KernelNames(const SymbolOptions& options, const format::Features& features, const KernelSpace& kernel)
      : options_(&options), features_(&features), kernel_(&kernel) {}

  // Read on first use: the file of --kallsyms, the one in the capture, or this machine's if it runs the
  // recorded kernel.
  Result<Kallsyms>& kallsyms();
  // Of the kernel or one of its modules, which must be at its recorded address: otherwise it is another
  // boot's, even if that kernel is at the recorded address.
  Result<SymbolTable*> table_of(const Module& module);
  // Starts to read the list in the background, because it will be needed.
  void expect();
  // By its build id, or where the capture has none (no sample lay in the kernel) by the names of host and
  // kernel. Never with --symfs, which names another machine.
  bool runs_recorded_kernel() const;
  // By the names of host and kernel.
  bool is_on_recording_host() const;

 private:
  Result<Kallsyms> read();

  const SymbolOptions* options_;
  const format::Features* features_;
  const KernelSpace* kernel_;
  std::optional<FileAhead> running_;  // this machine's list, read in the background
  std::optional<Result<Kallsyms>> kallsyms_;
};

}  // namespace tacho::symbolize
