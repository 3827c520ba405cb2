// A capture that may be given away, made of one that may not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "report/aliases.h"
#include "report/redaction.h"
#include "report/views/convert/convert.h"

namespace tacho::report {

// The head of a capture without what is to be hidden: its events' names and its sections, the symbol pack and
// the attached files among them.

struct HeadRedaction {
  const Redaction& redaction;
  const Aliases& aliases;
  const KernelPlaces& kernel;
  std::uint64_t time_shift = 0;                 // ns
  std::vector<format::ContentClass> content{};  // section CONTENT of the copy
};

// Changes both. What no rule is written for goes: sections that are not taken apart, attachments that are not
// known. An error when the symbol pack cannot be read: its contents are unknown.
Result<> redact_head(const HeadRedaction& rules, format::EventSet& events, format::Features& features);

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
