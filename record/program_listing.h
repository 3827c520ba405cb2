// `tacho list bpf`: the BPF programs that are loaded now.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bpf/program_list.h"
#include "format/result.h"
#include "record/listing.h"

namespace tacho::record {

// A line for each program, a second one where it is attached to several places; with details (-v) more.
// `costs`: in `seconds`; nothing: what the kernel has counted whenever its statistics were
// on.
std::string programs_in_lines(const std::vector<bpf::ListedProgram>& programs,
                              const std::optional<std::map<std::uint32_t, bpf::Cost>>& costs,
                              std::uint64_t seconds, bool with_details);

// The same as a JSON object a program, with all details.
std::string programs_in_json(const std::vector<bpf::ListedProgram>& programs,
                             const std::optional<std::map<std::uint32_t, bpf::Cost>>& costs,
                             std::uint64_t seconds);

// An error when the pattern matches no program's name.
Result<std::string> list_bpf_programs(const ListOptions& options);

}  // namespace tacho::record
