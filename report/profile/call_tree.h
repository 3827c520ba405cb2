// The call graph of a row: a prefix tree of call chains, built only as far as it is drawn. Chains are grouped
// by their first frame, each group above the threshold by the second, and so on, so that memory grows with
// the drawing and not with the number of chains.
//
// As in perf's graphs, a node has all frames up to the one where its chains differ or where one of them ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/profile/branches.h"
#include "report/profile/function.h"
#include "report/profile/function_table.h"
#include "report/samples/tables.h"

namespace tacho::report {

// A call chain, or the part of it that belongs to a row, with its weight.
struct Strand {
  std::span<const FunctionId> frames;  // in the order of drawing
  std::uint64_t period = 0, samples = 0;
};

// The threshold for nodes.
struct CallTreeLimit {
  enum class Share : std::uint8_t {
    OfTotal,   // at least `percent` of `total`, rounded down
    OfParent,  // at least `percent` of the sum of its siblings and itself, rounded up
    OfItself,  // as OfTotal, but for the chains that end in the node; its ancestors are kept
  };
  Share share = Share::OfTotal;
  double percent = 0.5;
  std::uint64_t total = 0;  // period, for OfTotal and OfItself

  // The least period of a node whose siblings, with it, have the period `together`.
  std::uint64_t least(std::uint64_t together) const;
};

struct CallNode {
  static constexpr std::uint32_t kNone = ~0U;
  std::span<const FunctionId> frames;           // of the first chain; lives as long as the strands
  std::uint32_t parent = kNone;                 // index of a node
  std::uint32_t first_child = 0, children = 0;  // consecutive nodes, the heaviest first
  // Of all chains through the node; then of the chains that end in it.
  std::uint64_t period = 0, samples = 0;
  std::uint64_t own_period = 0, own_samples = 0;
  std::uint32_t first_count = 0;  // see CallTree::counts()
};

// The order of siblings of equal weight. AsPerf: in one module, the higher address first, which changes the
// lines of a graph (PerfBytes::orders_siblings).
enum class SiblingOrder : std::uint8_t { ByName, AsPerf };

class CallTree {
 public:
  // `functions`: those of the strands' frames, with chain keys of this kind. One object builds many trees
  // with the same tables. `steps`: the steps of functions; null: branches are not counted.
  explicit CallTree(const StableArray<Function, FunctionId>& functions, ChainKey key = ChainKey::Function,
                    const BranchSteps* steps = nullptr, SiblingOrder order = SiblingOrder::ByName);

  // Builds the tree of these strands in place of the last one. Equal chains may be given more than once;
  // chains without frames are ignored. Siblings are sorted as rows are: heaviest first, then by name, module
  // and address.
  void build(std::span<const Strand> strands, const CallTreeLimit& limit);

  const StableArray<Function, FunctionId>& functions() const { return *functions_; }
  // Node 0 is the root: it has no frames, and the weight of all chains.
  const std::vector<CallNode>& nodes() const { return nodes_; }
  std::span<const CallNode> children(const CallNode& node) const {
    return std::span(nodes_).subspan(node.first_child, node.children);
  }
  bool counts_steps() const { return steps_ != nullptr; }
  // One for each frame of a node, in order; empty without `steps`.
  std::span<const BranchCounts> counts(const CallNode& node) const {
    return steps_ == nullptr ? std::span<const BranchCounts>()
                             : std::span(counts_).subspan(node.first_count, node.frames.size());
  }

 private:
  struct Range {  // of members_, with the number of frames above
    std::size_t begin = 0, end = 0, depth = 0;
  };
  struct Group {
    FunctionId frame{};       // of its first chain
    std::uint32_t joins = 0;  // the group it is counted with: usually itself
    std::uint32_t strands = 0;
    std::uint64_t period = 0, samples = 0;
    std::size_t at = 0;  // where its next member goes
  };
  struct Stamped {
    std::uint64_t round = 0;
    std::uint32_t group = 0;
  };
  void learn_functions();
  void expand(std::size_t index);
  void count_steps(CallNode& node, std::size_t depth);
  bool take_ended(CallNode& node, Range& range);
  std::size_t group_members(const Range& range);
  std::size_t join_inlined();
  std::vector<std::uint32_t> heavy_groups(const CallNode& node) const;
  bool is_before(std::uint32_t a, std::uint32_t b) const;
  void add_children(std::size_t index, const Range& range, std::span<const std::uint32_t> chosen);

  const StableArray<Function, FunctionId>* functions_;
  ChainKey key_;
  const BranchSteps* steps_;
  SiblingOrder order_;
  std::vector<BranchCounts> counts_;
  IdVector<FunctionId, ChainKeyId> keys_;
  std::size_t names_ = 0;  // one more than the highest NameId
  bool has_inlined_ = false;
  std::span<const Strand> strands_;
  CallTreeLimit limit_;
  std::vector<CallNode> nodes_;
  std::vector<Range> ranges_;           // of each node
  std::vector<std::uint32_t> members_;  // indices of strands, those of one node together
  // Of the current step:
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;  // of each member in the range
  std::vector<std::uint32_t> unsorted_;  // the members in their old order
  std::vector<std::uint32_t> arrived_;   // with `steps`: the members that arrived at the node
  IdVector<ChainKeyId, Stamped> group_by_key_;
  IdVector<NameId, Stamped> group_by_name_;
  std::uint64_t round_ = 0;
};

}  // namespace tacho::report
