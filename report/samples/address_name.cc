#include "report/samples/address_name.h"

#include <array>
#include <charconv>

namespace tacho::report {

const symbolize::Frame* frame_at(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address) {
  if (sample.places == nullptr) return nullptr;
  const Location& location = sample.locate(address);
  return location.mapping == nullptr ? nullptr : &resolver.frame(location);
}

std::string address_name(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address) {
  const symbolize::Frame* const frame = frame_at(resolver, sample, address);
  if (frame == nullptr || frame->function.empty()) return {};
  std::string name(frame->function);
  const std::uint64_t offset = frame->shown_address - frame->function_start;
  if (offset == 0) return name;
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr;
  return name.append("+0x").append(digits.data(), end);
}

}  // namespace tacho::report
