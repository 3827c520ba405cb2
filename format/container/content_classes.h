// Classes of sensitive content of a capture (command lines, host names, payloads, ...), to check before a
// capture is given to others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "format/container/environment.h"
#include "format/container/features.h"
#include "format/records/event_set.h"

namespace tacho::format {

enum class Content : std::uint8_t {
  CommandLine,
  Host,
  Paths,
  Comm,
  Containers,
  Payload,
  Stacks,
  Registers,
  Addresses,
  Kernel,
  Time,
  Traces,
};

struct ContentRow {
  Content content;
  std::string_view name;
  std::string_view what;
};

// In the order of Content.
inline constexpr ContentRow kContents[] = {
    {Content::CommandLine, "cmdline", "the recorder's command line, and the processes that ran at its start"},
    {Content::Host, "host", "the host's name, and names of users in paths"},
    {Content::Paths, "paths", "files that were mapped, and source files"},
    {Content::Comm, "comm", "names of threads"},
    {Content::Containers, "containers", "cgroups and namespaces"},
    {Content::Payload, "payload", "texts in the fields of tracepoints and BPF programs"},
    {Content::Stacks, "stacks", "bytes of stacks, with arguments and the environment of programs"},
    {Content::Registers, "registers", "registers of samples"},
    {Content::Addresses, "addresses", "addresses of data"},
    {Content::Kernel, "kernel", "the kernel's addresses in memory"},
    {Content::Time, "time", "the time of day of the recording"},
    {Content::Traces, "traces", "traces of processors (AUX)"},
};
inline constexpr std::size_t kContentCount = std::size(kContents);

inline std::string_view name_of(Content content) { return kContents[static_cast<std::size_t>(content)].name; }
std::optional<Content> find_content(std::string_view name);

// The sensitive content that a capture may have, judged by its header alone: events with stacks, sections
// that name the host, and so on. In the order of Content. A section CONTENT in the header decides.
std::vector<ContentClass> content_by_head(const EventSet& events, const Features& features);

}  // namespace tacho::format
