// Messages on stderr. Writing never blocks the recording.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "record/options/options.h"

namespace tacho::record {

// Messages without a reader delay a recording at most this long, all together; then they are dropped.
inline constexpr std::chrono::milliseconds kPatienceWithReaders{1000};

// Writes to a descriptor as far as it takes the bytes within `patience`, which is used up by waiting: a pipe
// may be full and its reader asleep, a terminal may be stopped.
void write_patiently(int fd, std::string_view bytes, std::chrono::milliseconds& patience);

class Messages {
 public:
  explicit Messages(const RecordOptions& options) : quiet_(options.quiet), verbose_(options.verbose) {}
  void note(std::string_view line) const;       // unless -q
  void detail(std::string_view line) const;     // with -v
  void warn(std::string_view line) const;       // always
  void bracketed(std::string_view line) const;  // "[ tacho record: ... ]", unless -q

 private:
  void print(std::string_view line) const;

  bool quiet_, verbose_;
  // Shared by copies: they write to the same reader.
  std::shared_ptr<std::chrono::milliseconds> patience_ =
      std::make_shared<std::chrono::milliseconds>(kPatienceWithReaders);
};

// The line that main() ends with.
void print_failure(const Error& error, std::string_view command = "record");
// The same; returns the exit status.
int report_failure(const Error& error, std::string_view command = "record");
// Prints a line on standard output. Returns the exit status.
int print_line(const std::string& line, std::string_view command = "record");

}  // namespace tacho::record
