// What stands between the reading of a capture and the view that is shown.
#pragma once

#include <cstdint>

#include "report/samples/sink.h"

namespace tacho::report {

class Outlet : public Sink {
 public:
  // Returns when every sample that was given has been shown, and whoever shows them rests until it is given
  // more. Names and text may be made on another thread, which looks into what all processes share.
  virtual void wait_until_shown() = 0;
  // Called every now and then, at least once for each quarter of a megabyte: so many bytes of the capture are
  // read.
  virtual Flow on_progress(std::uint64_t bytes) = 0;
};

}  // namespace tacho::report
