#include "report/profile/named_rows.h"

#include <algorithm>

#include "format/perf_abi.h"

namespace tacho::report {

void NamedRows::name_rows() {
  const std::size_t count = profile_->rows().size();
  while (rows_.size() < count) name_rows(rows_.size(), std::min(count, rows_.size() + kTogether));
}

// Functions in the rows' order, as perf asks for them, and then the chains.
void NamedRows::name_rows(std::size_t begin, std::size_t end) {
  const auto& rows = profile_->rows();
  for (std::size_t number = begin; number < end; ++number) {
    fetch_ahead(number, end);
    const ProfileRow& row = rows[number];
    Row named;
    named.function = functions_->of_place(row.location);
    named.is_kernel = resolver_->location(row.location).cpumode == format::abi::kCpumodeKernel;
    rows_.push_back(named);
    if (stacks_ != nullptr && row.stack != nullptr) stacks_->ask(*row.stack);
  }
  if (stacks_ == nullptr) return;
  auto chain = stacks_->answers().begin();
  for (std::size_t number = begin; number < end; ++number) {
    if (rows[number].stack != nullptr) rows_[number].chain = *chain++;
  }
}

// Each of these needs what the one before fetched, some rows earlier.
void NamedRows::fetch_ahead(std::size_t at, std::size_t end) const {
  const auto& rows = profile_->rows();
  constexpr std::size_t kStacks = 12, kFrames = 9, kAnswers = 6, kLocations = 4,
                        kAddresses = 2;  // rows ahead
  const auto frames_at = [&](std::size_t ahead) -> std::span<const std::uint32_t> {
    if (stacks_ == nullptr || at + ahead >= end || rows[at + ahead].stack == nullptr) return {};
    return rows[at + ahead].stack->frames;
  };
  if (stacks_ != nullptr && at + kStacks < end) __builtin_prefetch(rows[at + kStacks].stack);
  if (at + kFrames < end) __builtin_prefetch(frames_at(kFrames).data());
  if (at + kAnswers < end) functions_->prefetch_place(rows[at + kAnswers].location);
  if (at + kLocations < end) __builtin_prefetch(&resolver_->location(rows[at + kLocations].location));
  for (const std::uint32_t location : frames_at(kAnswers)) functions_->prefetch_frame(location);
  for (const std::uint32_t location : frames_at(kLocations)) functions_->prefetch_location(location);
  for (const std::uint32_t location : frames_at(kAddresses)) functions_->prefetch_address(location);
}

}  // namespace tacho::report
