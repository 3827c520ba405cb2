#include "report/views/convert/needed_symbols.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/extensions/symbol_pack.h"
#include "format/records/perf_abi.h"
#include "report/query/gather.h"
#include "report/samples/session.h"
#include "symbolize/files/attached_text.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

std::vector<std::string> names_of(const format::EventSet& events) {
  std::vector<std::string> names;
  for (const format::Event& event : events) names.push_back(event.name);
  return names;
}

// Copies of files, perf maps and jitdumps: those of modules that were hit; source files of functions that
// were.
void keep_needed_files(GatheredSymbols& gathered, std::vector<format::Attachment>& attachments) {
  const format::SymbolPack& pack = gathered.pack;
  std::unordered_set<std::string> hit;
  for (const format::PackedModule& module : pack.modules)
    hit.insert(symbolize::attached_file_name(pack.texts[module.path], module.build_id));
  const auto has_map_of = [&](std::string_view pid) {
    const std::string path = "/tmp/perf-" + std::string(pid) + ".map";
    return std::ranges::any_of(pack.modules,
                               [&](const auto& module) { return pack.texts[module.path] == path; });
  };
  constexpr std::string_view kMap = "perf-map/";
  std::erase_if(attachments, [&](const format::Attachment& attachment) {
    const std::string_view name = attachment.name;
    if (name.starts_with(symbolize::kAttachedFile)) return !hit.contains(attachment.name);
    if (name.starts_with(symbolize::kAttachedSource))
      return !gathered.sources.contains(std::string(name.substr(symbolize::kAttachedSource.size())));
    if (name.starts_with(kMap)) return !has_map_of(name.substr(kMap.size()));
    return name.starts_with(symbolize::kAttachedJitdump);
  });
  for (auto& [path, attached] : gathered.jitdumps)
    if (attached) attachments.push_back(std::move(attached->attachment));
}

}  // namespace

Result<> keep_needed_symbols(const CapturePart& part, const format::EventSet& events,
                             format::Features& features) {
  const auto before = format::parse_symbol_pack(features.symbol_pack);
  const auto has_stacks = [](const format::Event& event) {
    return event.attr.samples(abi::kSampleStackUser);
  };
  if (!before || std::ranges::any_of(events, has_stacks)) return Done{};
  SessionOptions reading;
  reading.input = part.input;
  reading.capture = part.capture;
  reading.symbols.symfs = symbolize::kNoFiles;
  reading.symbols.gate = part.gate;
  reading.filter.pids = part.pids;
  reading.filter.time_text = part.times;
  set_for_gathering(reading);
  auto session = Session::open(std::move(reading));
  if (!session) return std::move(session.error());
  session->filter().events = names_of(events);
  GatheredSymbols gathered = gather_symbols(*session, {.level = before->level, .only_packed = true});
  auto section = format::write_symbol_pack_section(gathered.pack);
  if (!section) return std::move(section.error());
  keep_needed_files(gathered, features.attachments);
  format::drop_section(features, abi::kFeatureAttachments);
  features.symbol_pack = std::move(*section);
  format::drop_section(features, abi::kFeatureSymbolPack);
  return Done{};
}

}  // namespace tacho::report
