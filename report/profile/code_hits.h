// Samples by function and by the address in it: what annotated code shows beside each instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/samples/index_table.h"
#include "report/samples/resolver.h"

namespace tacho::report {

struct HitCount {
  std::uint64_t samples = 0, period = 0;
  void add(const HitCount& other) {
    samples += other.samples;
    period += other.period;
  }
};

// What branch stacks say of one instruction.
struct BranchHits {
  std::uint64_t taken = 0;         // branches that came from here
  std::uint64_t mispredicted = 0;  // of these
  std::uint64_t entered = 0;       // branches that went to here
  std::uint64_t cycles = 0;        // of the blocks that ended here, of `timed` of them together
  std::uint64_t timed = 0;
  void add(const BranchHits& other);
  bool is_any() const { return taken != 0 || entered != 0; }
};

// A function that samples hit or branches touched.
struct HitFunction {
  Location place;                             // one of its addresses that were hit
  const symbolize::Module* module = nullptr;  // lives as long as the session
  std::uint64_t shown_address = 0;            // of `place`
  std::uint64_t start = 0, end = 0;           // in the space of shown addresses; equal: its size is not known
  std::string name;                           // as reports show it
  std::string linker_name;                    // empty: not known
  struct Hit {
    std::uint64_t offset = 0;  // bytes from the start
    std::uint32_t event = 0;
    HitCount count;
  };
  std::vector<Hit> hits;    // ascending by offset
  std::vector<Hit> totals;  // ascending by event, each once; `offset` is 0
  // Zeros: no sample of the event.
  HitCount total(std::uint32_t event) const;
  struct Branches {
    std::uint64_t offset = 0;
    BranchHits count;
  };
  std::vector<Branches> branches;  // ascending by offset, each once
};

class CodeHits {
 public:
  explicit CodeHits(std::size_t events) : totals_(events) {}

  void add(const ResolvedSample& sample);
  // The branches of a sample. The sink must have asked for everything (Sink::needs).
  void add_branches(const ResolvedSample& sample);

  // After the last sample: names the places and sorts them into functions. Places without a name are left
  // out.
  std::vector<HitFunction> functions(Resolver& resolver) const;
  // Of all samples of each event, those without a function too.
  const std::vector<HitCount>& totals() const { return totals_; }

 private:
  struct Place {
    std::uint32_t event = 0, location = 0;
    HitCount count;
  };
  struct BranchPlace {
    std::uint32_t location = 0;
    BranchHits count;
  };
  BranchHits& branches_at(std::uint32_t location);

  std::vector<HitCount> totals_;
  std::vector<Place> places_;
  IndexTable by_place_;
  std::vector<BranchPlace> branches_;
  IndexTable by_branch_;
};

// Of each event that has samples in functions: numbers of these functions, those with the largest period
// first, and of equal ones those with most samples.
std::map<std::uint32_t, std::vector<std::size_t>> hottest(const std::vector<HitFunction>& functions);

}  // namespace tacho::report
