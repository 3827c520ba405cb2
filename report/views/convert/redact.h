// A capture that may be given away, made of one that may not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "report/redaction.h"
#include "report/views/convert/convert.h"

namespace tacho::report {

struct RedactOptions {
  ConvertOptions copy;                       // input, output, events and times
  symbolize::FileGate* name_gate = nullptr;  // as copy.gate, of files that names are read of
  bool in_step = false;                      // by one thread
  bool in_place = false;
  Redaction redaction;
  std::string key;                  // of the aliases; empty: a random one
  std::vector<std::uint32_t> pids;  // of whom anything stays; empty: all
};

struct RedactedClass {
  Content content = Content::CommandLine;
  How how = How::Keep;
  std::uint64_t number = 0;  // in the capture as it was
  std::string_view unit;
  std::string example, becomes;  // empty: there is none to be shown
};

struct Redacted {
  std::vector<RedactedClass> classes;  // all of them
  std::uint64_t not_understood = 0;    // records that went because nothing is known of them
};

// What the capture holds, and what would become of it. Reads all of it.
Result<Redacted> examine_for_redaction(const RedactOptions& options, format::Diagnostics& diagnostics);
// The same, and writes the copy: at once when it is whole. A capture in the form of a pipe or of the other
// byte order is refused with what to do.
Result<Redacted> redact(const RedactOptions& options, const CaptureOutput& output,
                        format::Diagnostics& diagnostics);

}  // namespace tacho::report
