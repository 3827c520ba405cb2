#include "report/profile/named_rows.h"

#include <algorithm>

#include "format/records/perf_abi.h"

namespace tacho::report {

void NamedRows::name_rows() {
  const std::size_t count = profile_->rows().size();
  while (named() < count) name_rows(named(), std::min(count, named() + kTogether));
}

// Functions in the rows' order, as perf asks for them, and then the chains.
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

void NamedRows::name_rows(std::size_t begin, std::size_t end) {
  const auto& rows = profile_->rows();
  for (std::size_t number = begin; number < end; ++number) {
    fetch_ahead(number, end);
    const ProfileRow& row = rows[number];
    const std::uint32_t function = functions_->of_place(row.location);
    const CpuMode mode = mode_of(resolver_->location(row.location).cpumode);
    own_.push_back(function << kModeBits | static_cast<std::uint32_t>(mode));
    if (const Stack* const stack = stack_of(number)) stacks_->ask(*stack);
  }
  if (!has_stacks()) return;
  auto chain = stacks_->answers().begin();
  for (std::size_t number = begin; number < end; ++number)
    chains_.push_back(stack_of(number) != nullptr ? *chain++ : kNoChain);
}

// Each of these needs what the one before fetched, some rows earlier.
void NamedRows::fetch_ahead(std::size_t at, std::size_t end) const {
  const auto& rows = profile_->rows();
  constexpr std::size_t kStacks = 12, kFrames = 9, kAnswers = 6, kLocations = 4,
                        kAddresses = 2;  // rows ahead
  const auto frames_at = [&](std::size_t ahead) -> std::span<const std::uint32_t> {
    const Stack* const stack = at + ahead < end ? stack_of(at + ahead) : nullptr;
    if (stack == nullptr) return {};
    return stack->frames;
  };
  if (at + kStacks < end) __builtin_prefetch(stack_of(at + kStacks));
  if (at + kFrames < end) __builtin_prefetch(frames_at(kFrames).data());
  if (at + kAnswers < end) functions_->prefetch_place(rows[at + kAnswers].location);
  if (at + kLocations < end) __builtin_prefetch(&resolver_->location(rows[at + kLocations].location));
  for (const std::uint32_t location : frames_at(kAnswers)) functions_->prefetch_frame(location);
  for (const std::uint32_t location : frames_at(kLocations)) functions_->prefetch_location(location);
  for (const std::uint32_t location : frames_at(kAddresses)) functions_->prefetch_address(location);
}

}  // namespace tacho::report
