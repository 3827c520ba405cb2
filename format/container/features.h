// The feature sections of a capture's header: a table of their readers and writers.
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

// A section kept as bytes: its feature is unknown, or only copied.
struct RawSection {
  std::uint32_t feature = 0;
  std::vector<std::byte> bytes;
};

// The capture's header without its events.
struct Features {
  std::bitset<abi::kFeatureCount> present;
  Environment environment;
  TracingData tracing;
  std::vector<PayloadSchema> schemas;
  std::vector<Attachment> attachments;
  std::vector<std::byte> symbol_pack;  // the section's bytes (format/extensions/symbol_pack.h); empty: none
  std::vector<Event> event_descriptions;  // EVENT_DESC: attr, name, ids
  // AUXTRACE, CPU_DOMAIN_INFO and unknown sections; with ReadOptions::keep_all every section. These bytes are
  // written in place of the fields above.
  std::vector<RawSection> raw;

  const Attachment* attachment(std::string_view name) const;
};

// Reads one section into `out`, replacing what was read for that feature before; build ids are added instead,
// since a pipe brings some as records. An unknown feature is kept in `raw`. On an error `out` is unchanged.
Result<> read_feature(std::uint32_t feature, Cursor section, Features& out);
// Appends the section of `feature`. False, and nothing is written, when `features` has no such data.
bool write_feature(std::uint32_t feature, const Features& features, ByteWriter& out);
// Sets a section's bytes, in this machine's byte order, in features.raw.
void keep_section(Features& features, std::uint32_t feature, Bytes bytes);
// Removes a section's bytes from features.raw; the parsed fields stay.
void drop_section(Features& features, std::uint32_t feature);
// "HOSTNAME", or empty when unknown.
std::string_view feature_name(std::uint32_t feature);

}  // namespace tacho::format
