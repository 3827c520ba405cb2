// Checks for damage of a capture's header that parsing does not notice: a wrong offset often leads to bytes
// that can be parsed. The checks compare facts that the header has twice, and that each part is in the only
// region of the file where it can be. Damage is reported to `diagnostics`; no check stops the reading.
#pragma once

#include <cstdint>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/container/features.h"
#include "format/container/file_head.h"
#include "format/records/event_set.h"

namespace tacho::format {

// `table` is the extent of the table of feature sections, which lists `sections`. Checks that the bodies
// after the table follow one another without gaps up to the end of the file, and that no body overlaps the
// file header or the table. `file_size` is in bytes.
void check_sections(const FileSection& table, const std::vector<FeatureSection>& sections,
                    std::uint64_t file_size, Diagnostics& diagnostics);

// tacho lists the sections of a capture a second time, in the early table (docs/capture-format.md). Checks
// that both tables have the same offsets for the sections in front of the data (`data_offset`). Sections
// after it are written when the recording ends and are in `sections` only.
void check_early_table(const std::vector<FeatureSection>& early, const std::vector<FeatureSection>& sections,
                       std::uint64_t data_offset, Diagnostics& diagnostics);

// `ids` is the extent of one attr's list of event ids. Checks that its size is a multiple of 8 and that it
// overlaps neither the file header nor the table of attrs.
void check_ids(const FileSection& ids, const FileSection& attrs, Diagnostics& diagnostics);

// The section EVENT_DESC repeats every event's attr and ids. Checks that they are those of `events`.
// `attr_room` is the size in bytes of one attr in the table of attrs; a pipe has no such table, and passes 0.
void check_descriptions(const EventSet& events, const Features& features, std::uint64_t attr_room,
                        Diagnostics& diagnostics);

// Checks that an attr's size is possible, and that its sample_type and read_format have no bits that this
// reader does not know: the fields after an unknown one would be misread. `event` is the event's index.
void check_known(const EventAttr& attr, std::size_t event, Diagnostics& diagnostics);

}  // namespace tacho::format
