// What a folded line begins with: the name of the sample's process, as stackcollapse-perf.pl reads it in the
// first line of perf's text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "report/samples/index_table.h"
#include "report/samples/resolved_sample.h"
#include "report/views/folded/folded.h"

namespace tacho::report {

class FoldedStarts {
 public:
  struct Start {
    bool is_usual = false;  // the name: one that perf's line shows as it is
    bool is_seen = false;   // there is a line that it is read in
    bool is_java = false;
    std::uint32_t name = 0;
  };
  // The stacks, which number the names, must outlive this.
  FoldedStarts(FoldedStacks& folded, const FoldOptions& options, Names names)
      : folded_(&folded), options_(options), names_(names) {}

  // `event`: its name in perf's line. Valid until the next sample.
  const Start& of(const ResolvedSample& sample, std::string_view event);

 private:
  using Key = std::pair<const char*, std::uint32_t>;  // the name's bytes, and the tid where it matters
  struct KeyHash {
    RowHash hash;
    std::size_t operator()(const Key& key) const noexcept {
      return hash(reinterpret_cast<std::uintptr_t>(key.first), key.second);
    }
  };
  struct Recent {
    Key key;
    Start* start = nullptr;
  };

  FoldedStacks* folded_;
  FoldOptions options_;
  Names names_;
  KeyHash hash_;
  std::unordered_map<Key, Start, KeyHash> starts_;
  std::array<Recent, 64> recent_{};  // some of them, by their hash
};

}  // namespace tacho::report
