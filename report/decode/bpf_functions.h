// The functions of BPF programs in a capture: from struct bpf_prog_info in HEADER_BPF_PROG_INFO, with names
// from BTF (Documentation/bpf/btf.rst).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/container/environment.h"

namespace tacho::report {

struct BpfFunction {
  std::string name;  // as perf names it, "bpf_prog_TAG_NAME"; unchecked bytes, not safe to print
  std::uint64_t address = 0;
  std::uint32_t size = 0;  // bytes
  format::Bytes code;      // machine code of the kernel's JIT compiler; empty: not in the capture
};

// The names of functions in one BTF blob. `blob` must outlive this.
class BtfFunctions {
 public:
  explicit BtfFunctions(format::Bytes blob);
  // Empty when this type is no function.
  std::string_view name(std::uint32_t type) const;

 private:
  format::Bytes types_, strings_;
  std::vector<std::uint32_t> places_;  // offsets in types_ of type 1, 2, ...
};

class BpfFunctions {
 public:
  // `environment` must outlive this.
  explicit BpfFunctions(const format::Environment& environment) : environment_(&environment) {}
  // Empty when the program has no such information.
  std::vector<BpfFunction> of(const format::BpfProgramInfo& program);
  static std::uint32_t id(const format::BpfProgramInfo& program);

 private:
  const BtfFunctions* btf(std::uint32_t id);

  const format::Environment* environment_;
  std::map<std::uint32_t, std::optional<BtfFunctions>> btf_;  // by id, as far as requested
};

}  // namespace tacho::report
