// The head of a page, a JSON object that its script reads: what the capture is, and what is hidden or
// missing.
#pragma once

#include <string>

#include "report/output/field_sinks.h"
#include "report/samples/session.h"
#include "report/views/page/page_samples.h"

namespace tacho::report {

// Which contents are hidden.
void describe_hiding(JsonFields& to, const PageNames& names);
// Where a capture was recorded, its events, and what is missing.
void describe_capture(JsonFields& to, Session& session, PageSamples& samples, const PageNames& names,
                      PageTexts& texts, const std::string& input);
// The fills of the classes of frames and of the boxes of heat maps, light and dark.
void describe_colours(JsonFields& to);

}  // namespace tacho::report
