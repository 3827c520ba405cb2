// The first addresses of functions in pictures, for their source lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/samples/resolver.h"
#include "report/samples/tables.h"

namespace tacho::report {

// The first address of a function.
struct FrameAddress {
  LocationId location = kNo<LocationId>;
  std::uint32_t inlined = 0;  // index of the call at that location, innermost first
};

// The source line of a function in a picture, "main.c:12": where the function starts, or its file
// alone if that line was not packed; for an inlined call, the line in it. Safe to print. Empty: unknown. A
// file whose lines cannot be read is then reported by Resolver::report_missing().
std::string source_line(Resolver& resolver, const FrameAddress& address);

// The first addresses of a picture's frames, by their numbers.
class FrameAddresses {
 public:
  void keep(std::uint32_t frame, const FrameAddress& address) {
    if (addresses_.size() <= frame) addresses_.resize(frame + 1);
    if (addresses_[frame].location == kNo<LocationId>) addresses_[frame] = address;
  }
  FrameAddress address_of(std::uint32_t frame) const {
    return frame < addresses_.size() ? addresses_[frame] : FrameAddress();
  }
  std::size_t size() const { return addresses_.size(); }

 private:
  std::vector<FrameAddress> addresses_;
};

}  // namespace tacho::report
