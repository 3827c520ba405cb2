// What a kernel record that is no sample changes, and whom it is about.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "format/records/perf_abi.h"
#include "format/records/record.h"

namespace tacho::report {

// What a record changes in the address spaces.
struct Change {
  bool kernel = false;
  std::optional<std::uint32_t> pid;      // whose mappings
  std::optional<std::uint32_t> renamed;  // tid
  std::optional<std::uint32_t> born;     // tid
  std::optional<std::uint32_t> parent;   // pid whose mappings may have been found to be another process's
};

struct ChangeOf {
  std::uint16_t misc;
  Change operator()(const format::MmapRecord& r) const {
    if (r.pid == ~0U || (misc & format::abi::kCpumodeMask) == format::abi::kCpumodeKernel)
      return {.kernel = true, .pid = {}, .renamed = {}, .born = {}, .parent = {}};
    return {.kernel = false, .pid = r.pid, .renamed = {}, .born = {}, .parent = {}};
  }
  Change operator()(const format::CommRecord& r) const {
    return {.kernel = false,
            .pid = r.is_exec ? std::optional(r.pid) : std::nullopt,
            .renamed = r.tid,
            .born = {},
            .parent = {}};
  }
  Change operator()(const format::TaskRecord& r) const {
    if (r.is_exit) return {};
    // A thread shares its process's mappings.
    return {.kernel = false,
            .pid = r.pid == r.parent_pid ? std::nullopt : std::optional(r.pid),
            .renamed = {},
            .born = r.tid,
            .parent = r.pid == r.parent_pid ? std::nullopt : std::optional(r.parent_pid)};
  }
  Change operator()(const format::KsymbolRecord&) const {
    return {.kernel = true, .pid = {}, .renamed = {}, .born = {}, .parent = {}};
  }
  Change operator()(const auto&) const { return {}; }
};

struct SubjectOf {  // the thread a record is about
  using Pair = std::optional<std::pair<std::uint32_t, std::uint32_t>>;
  Pair operator()(const format::MmapRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const format::CommRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const format::TaskRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const format::NamespacesRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const auto&) const { return std::nullopt; }
};

}  // namespace tacho::report
