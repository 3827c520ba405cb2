#include "report/decode/data_source_text.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

namespace tacho::report {
namespace {

// The fields of the kernel's union perf_mem_data_src.
struct Part {
  unsigned shift, width;
  std::uint64_t of(std::uint64_t source) const { return source >> shift & ((std::uint64_t{1} << width) - 1); }
};
constexpr Part kOperation{0, 5}, kLevels{5, 14}, kSnoop{19, 5}, kLock{24, 2}, kTlb{26, 7},
    kLevelNumber{33, 4}, kRemote{37, 1}, kSnoopMore{38, 2}, kBlocked{40, 3}, kHops{43, 3};

constexpr std::string_view kOperations[] = {"N/A", "LOAD", "STORE", "PFETCH", "EXEC"};
constexpr std::string_view kLevelNames[] = {"N/A",
                                            "HIT",
                                            "MISS",
                                            "L1",
                                            "LFB/MAB",
                                            "L2",
                                            "L3",
                                            "Local RAM",
                                            "Remote RAM (1 hop)",
                                            "Remote RAM (2 hops)",
                                            "Remote Cache (1 hop)",
                                            "Remote Cache (2 hops)",
                                            "I/O",
                                            "Uncached"};
constexpr unsigned kFirstNamedLevel = 9;  // below: L1, L2, ...
constexpr std::string_view kNumberedLevels[] = {"CXL", "I/O", "Any cache", "LFB/MAB", "RAM", "PMEM", "N/A"};
constexpr std::string_view kHopNames[] = {"N/A", "core, same node", "node, same socket", "socket, same board",
                                          "board"};
constexpr std::string_view kSnoops[] = {"N/A", "None", "Hit", "Miss", "HitM"};
constexpr std::string_view kMoreSnoops[] = {"Fwd", "Peer"};
constexpr std::string_view kLocks[] = {"N/A", "Yes"};
constexpr std::string_view kTlbs[] = {"N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"};
constexpr std::uint64_t kHit = 2, kMiss = 4;  // among levels and TLBs

// The names of the bits that are set, " or " between them and what stands in `text` already.
void add_names(std::string& text, std::uint64_t bits, std::span<const std::string_view> names,
               bool& has_some) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    if (has_some) text += " or ";
    text += names[i];
    has_some = true;
  }
}

std::string hit_or_miss(std::uint64_t bits) {
  return std::string((bits & kHit) != 0 ? " hit" : "") + ((bits & kMiss) != 0 ? " miss" : "");
}

std::string level_text(std::uint64_t source) {
  const std::uint64_t levels = kLevels.of(source), number = kLevelNumber.of(source), hops = kHops.of(source);
  std::string text = kRemote.of(source) != 0 ? "Remote " : "";
  bool has_some = false;
  if (hops != 0) {
    text.append(kHopNames[hops < std::size(kHopNames) ? hops : 0]).append(" ");
  } else {
    add_names(text, levels & ~(kHit | kMiss), kLevelNames, has_some);
  }
  if (number != 0) {
    if (has_some) text += " or ";
    text += number < kFirstNamedLevel ? fmt::format("L{}", number)
                                      : std::string(kNumberedLevels[number - kFirstNamedLevel]);
  }
  if (text.empty()) text = "N/A";
  return text + hit_or_miss(levels);
}

std::string snoop_text(std::uint64_t source) {
  std::string text;
  bool has_some = false;
  add_names(text, kSnoop.of(source), kSnoops, has_some);
  add_names(text, kSnoopMore.of(source), kMoreSnoops, has_some);
  return has_some ? text : "N/A";
}

std::string tlb_text(std::uint64_t source) {
  const std::uint64_t tlb = kTlb.of(source);
  std::string text;
  bool has_some = false;
  add_names(text, tlb & ~(kHit | kMiss), kTlbs, has_some);
  return (has_some ? text : "N/A") + hit_or_miss(tlb);
}

// The lowest bit decides.
std::string_view first_name(std::uint64_t bits, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) != 0) return names[i];
  }
  return "No";
}

std::string blocked_text(std::uint64_t source) {
  const std::uint64_t blocked = kBlocked.of(source);
  if (blocked == 0 || (blocked & 1) != 0) return " N/A";
  return std::string((blocked & 2) != 0 ? " Data" : "") + ((blocked & 4) != 0 ? " Addr" : "");
}

}  // namespace

std::string data_source_text(std::uint64_t source) {
  constexpr std::size_t kMost = 99;
  std::string text =
      fmt::format("{:16x} |OP {}|LVL {}|SNP {}|TLB {}|LCK {}|BLK {}", source,
                  first_name(kOperation.of(source), kOperations), level_text(source), snoop_text(source),
                  tlb_text(source), first_name(kLock.of(source), kLocks), blocked_text(source));
  if (text.size() > kMost) text.resize(kMost);
  return text;
}

std::uint64_t data_source_bits(DataSourcePart part, std::uint64_t source) {
  switch (part) {
    case DataSourcePart::Level:
      return kLevels.of(source);
    case DataSourcePart::Snoop:
      return kSnoop.of(source);
    case DataSourcePart::Tlb:
      return kTlb.of(source);
    case DataSourcePart::Lock:
      return kLock.of(source);
    case DataSourcePart::Blocked:
      return kBlocked.of(source);
  }
  return 0;
}

std::string data_source_part(DataSourcePart part, std::uint64_t source) {
  constexpr std::size_t kMost = 63;
  std::string text;
  switch (part) {
    case DataSourcePart::Level:
      text = level_text(source);
      break;
    case DataSourcePart::Snoop:
      text = snoop_text(source);
      break;
    case DataSourcePart::Tlb:
      text = tlb_text(source);
      break;
    case DataSourcePart::Lock:
      text = first_name(kLock.of(source), kLocks);
      break;
    case DataSourcePart::Blocked:
      text = blocked_text(source);
      break;
  }
  if (text.size() > kMost) text.resize(kMost);
  return text;
}

}  // namespace tacho::report
