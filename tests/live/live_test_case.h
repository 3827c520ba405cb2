// A folder of its own for each test, and skipping with the reason.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "recorder.h"

namespace tacho::live {

// A tracepoint that only a test calls: one event for each getppid.
inline const std::string kGetppid = "syscalls:sys_enter_getppid";

// A number of calls at the scale of this run: a tenth, or all with script/test --long (TACHO_TEST_SCALE, as
// programs.py).
inline std::size_t scaled(std::size_t calls) {
  const char* const scale = getenv("TACHO_TEST_SCALE");
  return static_cast<std::size_t>(static_cast<double>(calls) * (scale == nullptr ? 0.1 : atof(scale)));
}

class LiveTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = missing_to_record(); !missing.empty()) GTEST_SKIP() << missing;
    std::string pattern = (std::filesystem::temp_directory_path() / "tacho-live-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  void TearDown() override {
    if (folder.empty()) return;
    check_readers();
    std::filesystem::remove_all(folder);
  }

  // perf reads what the test recorded: TACHO_READERS names tests/support/readers.py.
  void check_readers() const {
    const char* const readers = getenv("TACHO_READERS");
    if (readers == nullptr) return;
    Program run = Program::start({"python3", readers, folder}, folder);
    EXPECT_EQ(run.wait(600), 0) << run.errors();
  }

  // tacho-record with these words, in the test's folder, to its end.
  int record(std::vector<std::string> words) {
    words.insert(words.begin(), tacho_record());
    Program run = Program::start(words, folder);
    const int status = run.wait(60);
    errors = run.errors();
    return status;
  }
  CaptureSeen capture(const std::string& name = "perf.data") const {
    return read_capture(folder + "/" + name);
  }
  bool said(std::string_view text) const { return errors.find(text) != std::string::npos; }

  std::string folder;
  std::string errors;  // of the last record()
};

}  // namespace tacho::live
