// The part of a filter that needs names: in which modules and functions a sample ran.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/samples/by_number.h"
#include "report/samples/filter.h"
#include "report/samples/resolver.h"
#include "report/samples/sink.h"

namespace tacho::report {

// Passes samples whose own place has the wanted names. Asks once for each place.
class NameFilter : public Sink {
 public:
  // All three must outlive this.
  NameFilter(const Filter& filter, Resolver& resolver, Sink& sink);

  Needs needs() const override { return sink_->needs(); }
  Flow on_sample(const ResolvedSample& sample) override;
  Flow on_other(const OtherEvent& event) override { return sink_->on_other(event); }

 private:
  enum class Answer : std::uint8_t { NotAsked, No, Yes, ByAddress };
  Answer ask(const Location& location);
  bool has_wanted_address(std::uint64_t ip) const;

  const Filter* filter_;
  Resolver* resolver_;
  Sink* sink_;
  std::vector<std::uint64_t> addresses_;  // of the symbols that read as one
  ByNumber<Answer> answers_;              // by location
};

}  // namespace tacho::report
