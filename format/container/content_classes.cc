#include "format/container/content_classes.h"

#include <algorithm>
#include <array>
#include <ctime>

namespace tacho::format {
namespace {

// Calls set(content, is_there) for the content of an event's samples and records.
void add_event(const EventAttr& attr, const auto& set) {
  set(Content::Containers,
      attr.has(abi::kCgroup) || attr.has(abi::kNamespaces) || attr.samples(abi::kSampleCgroup));
  set(Content::Payload, attr.samples(abi::kSampleRaw));
  set(Content::Stacks, attr.samples(abi::kSampleStackUser));
  set(Content::Registers, attr.samples(abi::kSampleRegsUser) || attr.samples(abi::kSampleRegsIntr));
  set(Content::Addresses, attr.samples(abi::kSampleAddr) || attr.samples(abi::kSamplePhysAddr));
  set(Content::Kernel, !attr.has(abi::kExcludeKernel));
  set(Content::Time,
      attr.has(abi::kUseClockid) && (attr.clockid == CLOCK_REALTIME || attr.clockid == CLOCK_TAI));
  set(Content::Traces, attr.samples(abi::kSampleAux) || attr.has(abi::kAuxOutput));
}

}  // namespace

std::optional<Content> find_content(std::string_view name) {
  const auto row = std::ranges::find(kContents, name, &ContentRow::name);
  return row == std::end(kContents) ? std::nullopt : std::optional(row->content);
}

std::vector<ContentClass> content_by_head(const EventSet& events, const Features& features) {
  const Environment& environment = features.environment;
  if (!environment.content.empty()) return environment.content;
  std::array<bool, kContentCount> holds{};
  const auto set = [&](Content content, bool is_there) {
    if (is_there) holds[static_cast<std::size_t>(content)] = true;
  };
  for (const Event& event : events) add_event(event.attr, set);
  set(Content::CommandLine, !environment.command_line.empty() || features.attachment("processes") != nullptr);
  set(Content::Host, environment.hostname.has_value());
  set(Content::Paths, !events.empty());  // every recorder writes mappings and names of threads
  set(Content::Comm, !events.empty());
  set(Content::Kernel,
      features.attachment(kKallsymsAttachment) != nullptr || !environment.bpf_programs.empty());
  set(Content::Time, environment.clock_data.has_value());
  set(Content::Traces,
      std::ranges::find(features.raw, abi::kFeatureAuxtrace, &RawSection::feature) != features.raw.end());
  std::vector<ContentClass> content;
  for (const ContentRow& row : kContents)
    if (holds[static_cast<std::size_t>(row.content)])
      content.push_back({std::string(row.name), std::string(kAsRecorded)});
  return content;
}

}  // namespace tacho::format
