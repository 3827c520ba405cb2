// tacho check --init: a rule file from what captures have, with limits above what was measured.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/views/check/measured_capture.h"

namespace tacho::report {

class InitRules {
 public:
  // Reads a capture, whose head was read. `run` passes its samples to a sink.
  Result<> add_capture(Session& session, const std::string& name, const std::function<void(Sink&)>& run);
  void write(TextBuffer& out) const;

 private:
  // Largest values of all captures.
  struct FieldValues {
    std::string unit;
    double percentile = 0;  // the 99th
    std::uint64_t count = 0;
  };
  // Without callees, percent; `high`: the end of its interval.
  struct Share {
    double measured = 0, high = 0;
  };
  void add_functions(const MeasuredCapture& capture);
  void write_functions(TextBuffer& out) const;
  void write_fields(TextBuffer& out) const;

  std::vector<std::string> names_;       // of captures
  std::string event_;                    // of the functions; empty: no event has samples
  std::map<std::string, Share> shares_;  // by function
  std::map<std::string, FieldValues> fields_;
  double lost_ = 0, symbolized_ = 100;  // percent, of the worst capture
  std::uint64_t samples_ = 0;           // of the smallest one
};

}  // namespace tacho::report
