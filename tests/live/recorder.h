// Runs the built tacho-record and reads what it wrote: for tests on a real kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/container/capture_reader.h"
#include "format/container/features.h"

namespace tacho::live {

// A program that was started, its stderr caught.
class Program {
 public:
  struct Limits {
    std::uint64_t file_bytes = 0;  // of a file it writes; 0: no limit
  };
  static Program start(const std::vector<std::string>& command, const std::string& folder, Limits limits);
  static Program start(const std::vector<std::string>& command, const std::string& folder) {
    return start(command, folder, {});
  }
  ~Program();
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  // The exit status, or 1000 + the signal that ended it; -1 when it did not end in time and was killed.
  int wait(int seconds = 20);
  std::string errors() const;  // what it wrote to stderr so far

 private:
  Program(pid_t pid, std::string log) : pid_(pid), log_(std::move(log)) {}
  pid_t pid_;
  std::string log_;
  std::optional<int> status_;
};

struct SampleSeen {
  std::string event;
  std::uint32_t pid = 0, tid = 0, cpu = 0;
  std::uint64_t first_payload_word = 0;
  bool has_kernel_frames = false, has_user_frames = false;
};

// A capture, read as a report reads it.
struct CaptureSeen {
  std::vector<SampleSeen> samples;
  std::uint64_t lost = 0;                                        // of LOST_SAMPLES records
  std::vector<std::string> exec_names;                           // of COMM records by exec
  std::vector<std::string> mapped;                               // file names of MMAP2 records
  std::vector<std::pair<std::uint32_t, std::string>> mapped_by;  // the same with the process
  std::uint64_t mapped_with_build_id = 0;
  std::uint64_t out_of_order = 0;
  bool has_damage = false;  // something in it could not be read
  bool is_closed = true;
  format::Features features;

  std::uint64_t count(const std::string& event) const;
};
CaptureSeen read_capture(const std::string& path);
// How many samples a capture holds that may be in the making; 0 when there is none yet.
std::size_t samples_in(const std::string& path);

// Why recording cannot be tried here, or empty.
std::string missing_to_record();
// The same for BPF programs that need a compiler.
std::string missing_to_compile();

std::string tacho_record();  // paths of the programs
std::string getppid_load();
std::string worker_load();
std::string refusals();                // the library that refuses calls (tests/support/refusals.c)
std::string source(const char* name);  // a file beside the tests

}  // namespace tacho::live
