#include "report/profile/named_rows.h"

#include <algorithm>

#include "format/records/perf_abi.h"

namespace tacho::report {

void FunctionStacks::add(const Stack& stack) {
  Pending& pending = pending_.emplace_back(Pending{.stack = stack.id, .known = by_stack_.find(stack.id)});
  if (pending.known != kNo<ChainId>) return;
  pending.begin = frames_.size();
  add_frames(stack);
  pending.end = frames_.size();
  pending.hash = pending.end - pending.begin;
  for (std::size_t i = pending.begin; i < pending.end; ++i)
    pending.hash = by_frames_.hash.add(pending.hash, frames_[i]);
  by_frames_.prefetch(pending.hash);
}

void FunctionStacks::add_frames(const Stack& stack) {
  const std::size_t begin = frames_.size();
  // Resolved in perf's order, because names by binutils depend on the order.
  const bool is_caller = options_.order == ChainOrder::Caller;
  std::span<const std::uint32_t> steps;
  if (options_.branches != nullptr) steps = options_.branches->steps_of(stack);
  std::span<const std::uint32_t> names;
  if (options_.waits != nullptr) names = options_.waits->names_of(stack);
  for (std::size_t i = 0; i < stack.frames.size(); ++i) {
    const std::size_t at = is_caller ? stack.frames.size() - 1 - i : i;
    const LocationId location = stack.frames[at];
    if (!names.empty() && names[at] != WaitChains::kAddress) {
      frames_.push_back(functions_->of_name(options_.waits->name(names[at])));
      continue;
    }
    if (!steps.empty() && steps[at] != 0) {
      frames_.push_back(functions_->of_step(location, steps[at]));
      continue;
    }
    if (const FunctionId only = functions_->only_of_frame(location); only != kNo<FunctionId>) {
      frames_.push_back(only);
      continue;
    }
    const auto functions = functions_->of_frame(location);
    const std::size_t before = frames_.size();
    frames_.insert(frames_.end(), functions.begin(), functions.end());
    if (is_caller) std::reverse(frames_.begin() + static_cast<std::ptrdiff_t>(before), frames_.end());
  }
  if (!options_.hides_unknown) return;
  const auto unknown = std::remove_if(frames_.begin() + static_cast<std::ptrdiff_t>(begin), frames_.end(),
                                      [this](FunctionId id) { return !(*functions_)[id].has_symbol(); });
  frames_.erase(unknown, frames_.end());
}

std::span<const ChainId> FunctionStacks::chains() {
  const auto with_guess = [this](auto&& fetch) {
    for (const Pending& pending : pending_) {
      if (pending.known != kNo<ChainId>) continue;
      if (const ChainId guess = by_frames_.guess(pending.hash); guess != kNo<ChainId>) fetch(guess);
    }
  };
  if (pending_.size() > 1) {
    with_guess([this](ChainId guess) { __builtin_prefetch(&chains_[guess]); });
    with_guess([this](ChainId guess) { __builtin_prefetch(chains_[guess].data()); });
  }
  added_.clear();
  for (const Pending& pending : pending_) {
    added_.push_back(pending.known != kNo<ChainId> ? pending.known : intern(pending));
    if (pending.known == kNo<ChainId>) by_stack_[pending.stack] = added_.back();
  }
  pending_.clear();
  frames_.clear();
  return added_;
}

ChainId FunctionStacks::intern(const Pending& pending) {
  const auto frames = std::span(frames_).subspan(pending.begin, pending.end - pending.begin);
  return by_frames_.find_or_make(
      pending.hash, [&](ChainId known) { return std::ranges::equal(chains_[known], frames); },
      [&] { return chains_.push_back(store_.keep(frames)); });
}

void NamedRows::name_rows() {
  const std::size_t count = profile_->rows().size();
  while (named() < count) name_rows(named(), std::min(count, named() + kTogether));
}

namespace {

CpuMode mode_of(std::uint8_t cpumode) {
  switch (cpumode) {
    case format::abi::kCpumodeKernel:
      return CpuMode::Kernel;
    case format::abi::kCpumodeGuestKernel:
      return CpuMode::GuestKernel;
    case format::abi::kCpumodeGuestUser:
      return CpuMode::GuestUser;
    default:
      return CpuMode::User;
  }
}

}  // namespace

// First functions in the rows' order, as perf, then chains.
void NamedRows::name_rows(std::size_t begin, std::size_t end) {
  const auto& rows = profile_->rows();
  for (std::size_t i = begin; i < end; ++i) {
    fetch_ahead(i, end);
    const auto id = id_of<RowId>(i);
    const ProfileRow& row = rows[id];
    const FunctionId function = functions_->of_location(row.location);
    const CpuMode mode = mode_of(resolver_->location(row.location).cpumode);
    own_.push_back(value_of(function) << kModeBits | static_cast<std::uint32_t>(mode));
    if (const Stack* const stack = stack_of(id)) stacks_->add(*stack);
  }
  if (!has_stacks()) return;
  auto chain = stacks_->chains().begin();
  for (std::size_t i = begin; i < end; ++i)
    chains_.push_back(stack_of(id_of<RowId>(i)) != nullptr ? *chain++ : kNo<ChainId>);
}

// Each of these needs what the one before prefetched, some rows earlier.
void NamedRows::fetch_ahead(std::size_t at, std::size_t end) const {
  const auto& rows = profile_->rows();
  constexpr std::size_t kStacks = 12, kFrames = 9, kLookUps = 6, kLocations = 4,
                        kAddresses = 2;  // rows ahead
  const auto row = [at](std::size_t ahead) { return id_of<RowId>(at + ahead); };
  const auto frames_at = [&](std::size_t ahead) -> std::span<const LocationId> {
    const Stack* const stack = at + ahead < end ? stack_of(row(ahead)) : nullptr;
    if (stack == nullptr) return {};
    return stack->frames;
  };
  if (at + kStacks < end) __builtin_prefetch(stack_of(row(kStacks)));
  if (at + kFrames < end) __builtin_prefetch(frames_at(kFrames).data());
  if (at + kLookUps < end) functions_->prefetch_alone(rows[row(kLookUps)].location);
  if (at + kLocations < end) __builtin_prefetch(&resolver_->location(rows[row(kLocations)].location));
  for (const LocationId location : frames_at(kLookUps)) functions_->prefetch_frame(location);
  for (const LocationId location : frames_at(kLocations)) functions_->prefetch_location(location);
  for (const LocationId location : frames_at(kAddresses)) functions_->prefetch_address(location);
}

}  // namespace tacho::report
