// Completion of a reading command's values (cli/completion.h): sort keys, and events, fields, threads,
// modules and functions of the capture that the command line names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/completion.h"
#include "report/samples/session.h"

namespace tacho::report {

// Prints the words of a value that can be nothing else; false: it can.
bool print_fixed_values(const cli::ValuePlace& place);

// What the samples of a capture have a name or a number of.
enum class SampleName : std::uint8_t { None, Comm, Process, Thread, Module, Function };

// What can stand at a place.
struct NamedValues {
  cli::ValuePlace place;                        // of the last element of a list or expression
  std::vector<cli::Candidate> always;           // in every capture
  bool has_fields = false, has_events = false;  // of the capture
  SampleName of_samples = SampleName::None;
};
// nullopt: the value is none of these.
std::optional<NamedValues> named_values(const cli::ValuePlace& place);

// The capture of the command line so far: the value of -i, else its first word that is not an option, else
// perf.data.
std::string capture_before(const cli::ValuePlace& place);

// Events and fields of the capture, as `values` wants them. Reads its head; for names of samples also its
// samples, as many as it can in half a second.
std::vector<cli::Candidate> names_of_capture(Session& session, const NamedValues& values);

}  // namespace tacho::report
