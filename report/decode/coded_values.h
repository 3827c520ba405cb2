// Encoded numbers in perf's records as text: branch flags, data sources, sizes, register names, synthesized
// events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/base/cursor.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Bits of the flags in the kernel's struct perf_branch_entry, after the two addresses.
constexpr std::uint64_t kBranchMispredicted = 1, kBranchPredicted = 2, kBranchInTransaction = 4,
                        kBranchAborted = 8;
constexpr unsigned kBranchCyclesAt = 4;
constexpr std::uint64_t kBranchCyclesMask = 0xffff;

constexpr std::uint64_t branch_cycles(std::uint64_t flags) {
  return flags >> kBranchCyclesAt & kBranchCyclesMask;
}

// The type of a branch (PERF_BR_*), as the processor classified it.
struct BranchType {
  unsigned type = 0, extended = 0;  // `extended` is used when `type` is kExtended
  static constexpr unsigned kUnknown = 0, kConditional = 1, kExtended = 15, kCount = 16;
  static constexpr unsigned kExtendedCount = 8;  // extended types that have names
};
BranchType branch_type(std::uint64_t flags);
// The bits of the flags that branch_type() reads.
constexpr std::uint64_t kBranchTypeBits = std::uint64_t{15} << 20 | std::uint64_t{15} << 26;
// "COND"; empty for an unknown type.
std::string_view branch_type_name(BranchType type);

// PERF_SAMPLE_DATA_SRC, the memory level that answered an access, as text:
// "1e05080021 |OP N/A|LVL ...|BLK  N/A", cut at 99 characters as by perf.
std::string data_source_text(std::uint64_t source);

// The parts of a data source. Each text is cut at 63 characters as by perf report.
enum class DataSourcePart : std::uint8_t { Level, Snoop, Tlb, Lock, Blocked };
// The bits of a data source that this part compares. Level has only the bits that perf report compares.
std::uint64_t data_source_bits(DataSourcePart part, std::uint64_t source);
std::string data_source_part(DataSourcePart part, std::uint64_t source);

// "24G": the largest unit that leaves at least 2.
std::string short_size(std::uint64_t bytes);
// "4K", "1024M"; "N/A" for 0.
std::string page_size_text(std::uint64_t size);
// As printf's %#x: "0x12", but "0" for 0.
std::string alternate_hex(std::uint64_t value);

// The name of a register by perf's number (PERF_REG_*): "AX", "lr", "unknown". `arch` is the one in the
// capture's header: "x86_64", "aarch64".
std::string register_name(std::string_view arch, unsigned number);

// The architecture of the registers: the one in the capture's header, or else this machine's, as in perf.
std::string register_machine(const std::optional<std::string>& recorded);

// The raw data of events that perf synthesized from a processor trace (`perf inject --itrace`), as text. The
// event's `config` is its kind. Writes nothing for unknown kinds and data that is too short.
void write_synth(TextBuffer& out, std::uint64_t config, format::Bytes raw, std::endian order);

}  // namespace tacho::report
