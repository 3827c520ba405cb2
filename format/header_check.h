// What stands twice in a capture's header, or has one place only where it can stand, compared: so that a
// damaged number is told even when it leads to something that can be read.
#pragma once

#include <cstdint>
#include <vector>

#include "format/diagnostics.h"
#include "format/event_set.h"
#include "format/features.h"
#include "format/file_head.h"

namespace tacho::format {

// The table at `table` names `sections`: bodies lie behind the table without holes, up to the file's end, and
// nothing lies in the file's header.
void check_sections(const FileSection& table, const std::vector<FeatureSection>& sections,
                    std::uint64_t file_size, Diagnostics& diagnostics);

// Our own early table names the sections before the data as well: the same ones at the same places.
void check_early_table(const std::vector<FeatureSection>& early, const std::vector<FeatureSection>& sections,
                       std::uint64_t data_offset, Diagnostics& diagnostics);

// The event ids of one attr: whole words that lie outside the header and the table of attrs.
void check_ids(const FileSection& ids, const FileSection& attrs, Diagnostics& diagnostics);

// EVENT_DESC repeats every event's attr and ids. `attr_room`: bytes that an attr has in the table; 0 in a
// pipe.
void check_descriptions(const EventSet& events, const Features& features, std::uint64_t attr_room,
                        Diagnostics& diagnostics);

// No size that an attr cannot have, and no fields of samples or counter values that this reader does not
// know: what stands behind those is misread.
void check_known(const EventAttr& attr, std::size_t event, Diagnostics& diagnostics);

}  // namespace tacho::format
