// The optional sections of a capture's header: one table, read and written.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/extensions/attachment.h"
#include "format/extensions/payload_schema.h"
#include "format/extensions/tracing_data.h"
#include "format/records/event_set.h"
#include "format/records/perf_abi.h"

namespace tacho::format {

// A section kept as bytes: of a feature we do not know, or one we only pass on.
struct RawSection {
  std::uint32_t feature = 0;
  std::vector<std::byte> bytes;
};

// Everything a capture's header holds besides the events themselves.
struct Features {
  std::bitset<abi::kFeatureCount> present;
  Environment environment;
  TracingData tracing;
  std::vector<PayloadSchema> schemas;
  std::vector<Attachment> attachments;
  std::vector<std::byte> symbol_pack;  // the section as it is (format/extensions/symbol_pack.h); empty: none
  std::vector<Event> event_descriptions;  // EVENT_DESC: attr, name, ids
  // AUXTRACE, CPU_DOMAIN_INFO and unknown ones; with ReadOptions::keep_all every section. What stands here
  // is written as it is, before anything above.
  std::vector<RawSection> raw;

  const Attachment* attachment(std::string_view name) const;
};

// Reads one section into `out`, in place of what a section of that feature said before; build ids stand
// behind those there were, as a pipe brings some as records. An unknown feature is kept in `raw`. On an error
// nothing of it is kept, and what was there stays.
Result<> read_feature(std::uint32_t feature, Cursor section, Features& out);
// Appends the body of `feature`; false when `features` has nothing for it (then nothing is written).
bool write_feature(std::uint32_t feature, const Features& features, ByteWriter& out);
// Puts a section's bytes (in this machine's byte order) into features.raw, in place of those there were.
void keep_section(Features& features, std::uint32_t feature, Bytes bytes);
// Removes them; what the section said stays.
void drop_section(Features& features, std::uint32_t feature);
// "HOSTNAME", or empty when unknown.
std::string_view feature_name(std::uint32_t feature);

}  // namespace tacho::format
