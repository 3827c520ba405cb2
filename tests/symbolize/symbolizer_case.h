// A test of the front door: process 7 of a recording host, whose files are made as the test needs them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/container/features.h"
#include "format/records/perf_abi.h"
#include "symbolize/symbolizer.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize::test {

class SymbolizerCase : public testing::Test {
 protected:
  static constexpr std::uint64_t kStart = 0x7f0000000000, kLength = 0x3000;

  SymbolizerCase() { options.symfs = root.path(); }

  void map(std::string_view path, std::string_view build_id = "", std::uint64_t start = kStart) {
    format::MmapRecord record;
    record.pid = record.tid = 7;
    record.start = start;
    record.length = kLength;
    record.filename = path;
    record.is_mmap2 = true;
    record.protection = 5;
    if (!build_id.empty()) record.build_id = *format::BuildId::from_hex(build_id);
    spaces.apply(record, format::abi::kCpumodeUser);
  }
  void map_kernel(std::uint64_t start, std::uint64_t length, std::uint64_t page_offset,
                  std::string_view name) {
    format::MmapRecord record;
    record.pid = record.tid = static_cast<std::uint32_t>(-1);
    record.start = start;
    record.length = length;
    record.page_offset = page_offset;
    record.filename = name;
    spaces.apply(record, format::abi::kCpumodeKernel);
  }
  // Made at the first question, with the options of that moment.
  Symbolizer& symbolizer() {
    if (!made) made.emplace(options, features, spaces);
    return *made;
  }
  std::span<const Frame> resolve(std::uint64_t ip, Origin origin,
                                 std::uint8_t mode = format::abi::kCpumodeUser) {
    return symbolizer().resolve(spaces.find_mapping(7, {ip}, mode), {ip}, mode, origin);
  }
  // What is said of modules without names, a line each.
  std::string missing() {
    format::Diagnostics diagnostics;
    symbolizer().report_missing(diagnostics);
    std::string lines;
    for (const auto& finding : diagnostics.findings()) lines += finding.first + "\n";
    return lines;
  }

  Folder root;
  SymbolOptions options;
  format::Features features;
  AddressSpaces spaces;
  std::optional<Symbolizer> made;
};

}  // namespace tacho::symbolize::test
