#include "report/samples/leaf_caller.h"

#include <cstddef>
#include <span>

#include "format/records/perf_abi.h"

namespace tacho::report {

namespace abi = format::abi;

std::optional<format::U64Array> LeafCaller::chain_of(const format::Sample& sample,
                                                     const format::EventAttr& attr,
                                                     symbolize::Unwinder& unwinder,
                                                     const symbolize::SpaceVersion& space,
                                                     std::endian order) {
  if (!symbolize::Unwinder::has_link_alone(attr)) return std::nullopt;
  const format::U64Array& chain = sample.callchain;
  std::size_t leaf = 1;
  while (leaf < chain.size() && chain[leaf - 1] != abi::kContextUser) ++leaf;
  if (leaf + 1 >= chain.size()) return std::nullopt;  // perf adds none to a chain of one
  const auto caller = unwinder.caller_of_leaf(sample, space, chain[leaf], order);
  if (!caller || *caller == chain[leaf + 1]) return std::nullopt;
  words_.clear();
  for (std::size_t i = 0; i < chain.size(); ++i) {
    words_.push_back(chain[i]);
    if (i != leaf) continue;
    words_.push_back(abi::kContextUser);  // it is no return address, but one less
    words_.push_back(*caller);
  }
  return format::U64Array(std::as_bytes(std::span(words_)), std::endian::native);
}

}  // namespace tacho::report
