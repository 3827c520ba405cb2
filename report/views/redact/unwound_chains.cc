#include "report/views/redact/unwound_chains.h"

#include <utility>

namespace tacho::report {

Result<UnwoundChains> UnwoundChains::read(SessionOptions reading) {
  reading.keeps_addresses = true;
  auto session = Session::open(std::move(reading));
  if (!session) return std::move(session.error());
  UnwoundChains made;
  session->run(made);
  made.chains_.resize(made.stacks_.size());
  for (std::size_t number = 0; number < made.stacks_.size(); ++number) {
    if (made.stacks_[number] == nullptr) continue;
    for (const LocationId frame : made.stacks_[number]->frames)
      if (const Location& location = session->resolver().location(frame); location.is_unwound)
        made.chains_[number].push_back(location.ip.value);
  }
  made.stacks_ = {};
  return made;
}

Sink::Flow UnwoundChains::on_sample(const ResolvedSample& sample) {
  if (sample.stack == nullptr || sample.fields->user_stack.empty()) return Flow::Continue;
  const StackId stack = sample.stack->id;
  stack_of_[hash_(format::as_text(sample.record->bytes))] = stack;
  if (index_of(stack) >= stacks_.size()) stacks_.resize(index_of(stack) + 1);
  stacks_[index_of(stack)] = sample.stack;
  return Flow::Continue;
}

}  // namespace tacho::report
