// Numbers of perf's records as words: flags of branches, memory data sources, registers, synthesized events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/base/cursor.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Bits of the flags in the kernel's struct perf_branch_entry, behind the two addresses.
constexpr std::uint64_t kBranchMispredicted = 1, kBranchPredicted = 2, kBranchInTransaction = 4,
                        kBranchAborted = 8;
constexpr unsigned kBranchCyclesAt = 4;
constexpr std::uint64_t kBranchCyclesMask = 0xffff;

constexpr std::uint64_t branch_cycles(std::uint64_t flags) {
  return flags >> kBranchCyclesAt & kBranchCyclesMask;
}

// How the processor classed a branch.
struct BranchType {
  unsigned type = 0, extended = 0;  // `extended` counts when `type` is kExtended
  static constexpr unsigned kUnknown = 0, kConditional = 1, kExtended = 15, kCount = 16;
  static constexpr unsigned kExtendedCount = 8;  // of branches with names
};
BranchType branch_type(std::uint64_t flags);
// The flags' bits that branch_type() reads.
constexpr std::uint64_t kBranchTypeBits = std::uint64_t{15} << 20 | std::uint64_t{15} << 26;
// "COND"; empty where it is not known.
std::string_view branch_type_name(BranchType type);

// Where a memory access was answered from (PERF_SAMPLE_DATA_SRC), in words.

// "1e05080021 |OP N/A|LVL ...|BLK  N/A", at most 99 characters, as perf cuts it.
std::string data_source_text(std::uint64_t source);

// Its parts. Each text has at most 63 characters, as perf's reports cut it.
enum class DataSourcePart : std::uint8_t { Level, Snoop, Tlb, Lock, Blocked };
// The bits by which two values differ; of levels, only the ones that perf's reports compare.
std::uint64_t data_source_bits(DataSourcePart part, std::uint64_t source);
std::string data_source_part(DataSourcePart part, std::uint64_t source);

// Registers as perf numbers them in samples, by the machine that recorded.

// "AX", "lr"; "unknown" for numbers and machines that have no name. `arch` as in the capture's header:
// "x86_64", "aarch64".
std::string register_name(std::string_view arch, unsigned number);

// Whose registers they are: the machine that a capture names, or else this one, as perf has it.
std::string register_machine(const std::optional<std::string>& recorded);

// Events that perf made of a processor trace (`perf inject --itrace`): what their bytes say, as words.

// `config` of the event says which kind it is. Nothing for kinds that are not known and bytes that are too
// few.
void write_synth(TextBuffer& out, std::uint64_t config, format::Bytes raw, std::endian order);

}  // namespace tacho::report
