// tacho redact: makes a copy of a capture without private data.
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
  ConvertOptions copy;                           // input, output, events and times
  symbolize::FileAccess* name_access = nullptr;  // as copy.access, for files from which names are read
  bool in_step = false;                          // use one thread only
  bool in_place = false;
  Redaction redaction;
  std::string key;                  // --key; empty: a random one
  std::vector<std::uint32_t> pids;  // the processes to keep; empty: all
};

struct RedactedClass {
  Content content = Content::CommandLine;
  How how = How::Keep;
  std::uint64_t number = 0;  // in the input
  std::string unit;
  std::string example, becomes;  // an example and its redacted form; may be empty
};

struct Redacted {
  std::vector<RedactedClass> classes;  // all of them
  std::uint64_t not_understood = 0;    // dropped records, of unknown types or too long
};

// --dry-run: reads the whole capture and reports its private data and what redact would do with it.
Result<Redacted> examine_for_redaction(const RedactOptions& options, format::Diagnostics& diagnostics);
// The same, and writes the copy, which gets its name when it is complete. Captures in pipe form or of the
// other byte order are refused, with what to do.
Result<Redacted> redact(const RedactOptions& options, const CopyOutput& output,
                        format::Diagnostics& diagnostics);

}  // namespace tacho::report
