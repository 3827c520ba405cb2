/* SPDX-License-Identifier: Apache-2.0 */
// Reads captures of tacho and perf in a C++17 program: samples with the names of their stacks, and profiles.
//
//   std::string error;
//   const auto capture = tacho::Capture::open("perf.data", {}, error);
//   if (!capture) return fail(error);
//   tacho::Profile profile;
//   capture->read([&](const tacho::CapturedSample& sample) { profile.add(sample); return true; });
//   for (const tacho::ProfileRow& row : profile.rows()) ...
//
// CMake: find_package(tacho) and target_link_libraries(PROGRAM tacho::capture). docs/library.md says more.
//
// A capture is read in the process itself, where tacho-report reads it in a process that may do nothing else:
// for captures of others choose that, or give such a process to this library. Damage in a capture is skipped
// and counted (problems()). No exception leaves these functions but std::bad_alloc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tacho {

// The names are bytes of the capture, unchecked: make them safe before they are printed (printable()).
struct StackFrame {
  std::string_view function;  // demangled; empty: unknown
  std::string_view module;    // the path of the program, library or kernel module; empty: nothing was mapped
  std::uint64_t address = 0;  // in the recorded process
  bool is_inlined = false;    // inlined into the next frame
  bool is_kernel = false;
};

// Texts and frames are valid until the callback returns.
struct CapturedSample {
  std::string_view event;  // "cpu-clock", "sched:sched_switch"
  std::string_view comm;   // the thread's name at that time
  std::uint32_t pid = 0, tid = 0;
  std::optional<std::uint32_t> cpu;
  std::optional<std::uint64_t> time;  // ns of the capture's clock
  std::uint64_t period = 0;           // of the event's unit: ns of cpu-clock, counts of a counter
  // Innermost first. Without a recorded call chain the sample's own address alone.
  std::vector<StackFrame> stack;
};

struct CaptureOptions {
  std::string symfs;    // a folder with the files of the recording host; empty: those of this one
  bool inlined = true;  // frames of inlined calls, by debug information
};

class Capture {
 public:
  // Null: `error` says why, in one line.
  static std::unique_ptr<Capture> open(const std::string& path, const CaptureOptions& options,
                                       std::string& error);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::vector<std::string> events() const;
  // Calls `each` for every sample in the order of time, until it returns false. Once: later calls do nothing.
  void read(const std::function<bool(const CapturedSample&)>& each);
  // What is damaged or missing, a line each; after read() all of it.
  std::vector<std::string> problems() const;

 private:
  struct State;
  explicit Capture(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A function of a profile.
struct ProfileRow {
  std::string function, module;
  std::uint64_t samples = 0;       // that ran in it
  std::uint64_t self = 0;          // their periods
  std::uint64_t with_callees = 0;  // periods of all samples with it in their stack
};

// Sums of periods by function. Samples of events with different units need a profile each.
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void add(const CapturedSample& sample);
  // The sum of all periods, and the number of samples.
  std::uint64_t total() const;
  std::uint64_t samples() const;
  // Largest `self` first; equal ones by `with_callees`, then by name.
  std::vector<ProfileRow> rows() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A name as a terminal can show it: control characters, invalid UTF-8 and direction overrides become \xNN.
std::string printable(std::string_view name);

}  // namespace tacho
