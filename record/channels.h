// The channels of BPF objects while a recording runs: their ring buffers are read, and what nobody wants is
// left out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bpf/user_object.h"
#include "format/result.h"
#include "record/channel_rings.h"
#include "record/channel_sieve.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/prepared.h"
#include "record/summaries.h"

namespace tacho::record {

// Tells the objects, which are not loaded yet, what is wanted: whose events, and how many of them. Those that
// do not ask are noted in `prepared`. A use error when there is none for the rate.
Result<> tell_objects(Prepared& prepared, const bpf::EventRate& rate, const Messages& messages);

class Channels {
 public:
  // Of the loaded objects. What is passed must outlive it; `prepared` is told how to ask for losses.
  static Result<Channels> open(Prepared& prepared, const KernelEvents& events, const bpf::EventRate& rate,
                               const SummaryReading& reading);

  // For the pump; null when there is nothing to do.
  ChannelRings* rings() { return rings_->empty() ? nullptr : rings_.get(); }
  Summaries* summaries() { return summaries_->empty() ? nullptr : summaries_.get(); }
  ChannelSieve* sieve() { return sieve_ ? &*sieve_ : nullptr; }

  struct LeftOut {
    std::uint64_t of_others = 0;  // of threads whom nobody follows, by programs that do not ask
    std::uint64_t over_rate = 0;  // above --max-rate, here and in the programs
  };
  LeftOut left_out() const;

 private:
  explicit Channels(const Prepared& prepared) : prepared_(&prepared) {}
  const Prepared* prepared_;
  std::shared_ptr<ChannelRings> rings_;   // also asked for losses at the end
  std::shared_ptr<Summaries> summaries_;  // the same
  std::optional<ChannelSieve> sieve_;
};

void tell_what_was_left_out(const Channels::LeftOut& left_out, const bpf::EventRate& rate,
                            const Messages& messages);

}  // namespace tacho::record
