#include "report/samples/lbr_stack.h"

#include <algorithm>
#include <bit>
#include <span>

#include "format/records/perf_abi.h"

namespace tacho::report {

namespace abi = format::abi;

std::optional<format::U64Array> LbrStack::chain_of(const format::Sample& sample,
                                                   const format::EventAttr& attr, std::size_t max_words) {
  const bool keeps_calls =
      attr.samples(abi::kSampleBranchStack) && (attr.branch_sample_type & abi::kBranchCallStack) != 0;
  if (!keeps_calls) return std::nullopt;
  const std::size_t words = std::min(max_words, sample.callchain.size());
  std::size_t user = 0;
  while (user < words && sample.callchain[user] != abi::kContextUser) ++user;
  if (user == words) return std::nullopt;
  words_.clear();
  for (std::size_t i = 0; i < user; ++i) words_.push_back(sample.callchain[i]);
  const auto add = [&](std::uint64_t address) {
    words_.push_back(abi::kContextUser);
    words_.push_back(address);
  };
  if (sample.branch_count() > 0) add(sample.branch(0).to);
  for (std::size_t i = 0; i < sample.branch_count(); ++i) add(sample.branch(i).from);
  return format::U64Array(std::as_bytes(std::span(words_)), std::endian::native);
}

}  // namespace tacho::report
