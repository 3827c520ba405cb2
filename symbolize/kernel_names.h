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
class BackgroundReader {
 public:
  using Content = std::vector<std::byte>;

  // Starts to read at most `limit` bytes. If no thread can be created, next_piece() reads.
  BackgroundReader(std::string path, std::uint64_t limit);
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  // Waits for the next piece; an empty one at the end. After an error there are no more.
  Result<Content> next_piece();

 private:
  void read_pieces(const std::stop_token& stop);
  void put_piece(Content piece);
  void end_pieces(Result<> outcome);

  std::string path_;
  std::uint64_t limit_;
  std::mutex mutex_;  // guards the next three
  std::condition_variable changed_;
  std::deque<Content> pieces_;
  Result<> outcome_ = Done{};
  bool has_ended_ = false;
  std::jthread thread_;  // destroyed first: it uses the other members
};

// Finds the symbol list (kallsyms) of the recorded kernel.
class KernelNames {
 public:
  // The arguments must outlive this.
  KernelNames(const SymbolOptions& options, const format::Features& features, const KernelSpace& kernel)
      : options_(&options), features_(&features), kernel_(&kernel) {}

  // Read on first use: the file of --kallsyms, the one in the capture, or this machine's if it runs the
  // recorded kernel.
  Result<Kallsyms>& kallsyms();
  // The symbols of the kernel or a module, which must be at its recorded address: otherwise the list is of
  // another boot, even if its kernel is at the recorded address.
  Result<SymbolTable*> table_of(const Module& module);
  // Starts to read the list in the background, because it will be needed.
  void start_reading();
  // Whether this machine runs the recorded kernel: by build id, or, if the capture has none (no sample was in
  // the kernel), by the names of host and kernel. False with --symfs.
  bool runs_recorded_kernel() const;

 private:
  Result<Kallsyms> read_kallsyms();

  const SymbolOptions* options_;
  const format::Features* features_;
  const KernelSpace* kernel_;
  std::optional<BackgroundReader> running_;  // this machine's list, read in the background
  std::optional<Result<Kallsyms>> kallsyms_;
};

}  // namespace tacho::symbolize
