// The function and address of an end of a branch.
#pragma once

#include <cstdint>

#include "format/records/perf_abi.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// User code or the kernel's, by its address: a branch may lead from one to the other.
inline const Location& branch_place(const ResolvedSample& sample, std::uint64_t address) {
  const Location& user = sample.locate_in(address, format::abi::kCpumodeUser);
  if (user.mapping != nullptr) return user;
  const Location& kernel = sample.locate_in(address, format::abi::kCpumodeKernel);
  return kernel.mapping != nullptr ? kernel : user;
}

}  // namespace tacho::report
