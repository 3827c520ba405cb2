// What a folded line begins with: the name of the sample's thread; with --as-perf what stackcollapse-perf.pl
// takes for it in the first line of perf's text.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "report/samples/index_table.h"
#include "report/samples/resolved_sample.h"
#include "report/views/folded/folded.h"

namespace tacho::report {

class FoldedStarts {
 public:
  struct Start {
    bool is_usual = false;  // --as-perf: the name is one that perf's line shows as it is
    bool is_seen = false;   // always, but for --as-perf, where no line may seem to begin with a name
    bool is_java = false;
    std::uint32_t name = 0;
    // Tells this start from all others by where its bytes lie.
    std::string_view key{};
  };
  // `root`: the number of the event's name, below which its lines stand. The stacks, which number the names,
  // must outlive this.
  FoldedStarts(FoldedStacks& folded, std::uint32_t root, const FoldOptions& options)
      : folded_(&folded), root_(root), options_(options) {}
  std::uint32_t root() const { return root_; }

  // `event`: its name in perf's line. Valid until the next sample.
  const Start& of(const ResolvedSample& sample, std::string_view event);

 private:
  // The name's bytes, and pid and tid where these matter.
  struct Key {
    const char* comm = nullptr;
    std::uint32_t pid = 0, tid = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    RowHash hash;
    std::size_t operator()(const Key& key) const noexcept {
      return hash(reinterpret_cast<std::uintptr_t>(key.comm), key.pid, key.tid);
    }
  };
  void begin(Start& start, const ResolvedSample& sample);
  void read_as_perl(Start& start, const ResolvedSample& sample, std::string_view event);
  struct Recent {
    Key key;
    Start* start = nullptr;
  };

  FoldedStacks* folded_;
  std::uint32_t root_;
  FoldOptions options_;
  KeyHash hash_;
  std::unordered_map<Key, Start, KeyHash> starts_;
  std::deque<std::string> keys_;
  std::array<Recent, 64> recent_{};  // some of them, by their hash
};

}  // namespace tacho::report
