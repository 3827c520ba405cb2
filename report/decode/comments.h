// The comments of a profile that tacho import made a capture of: a file in the capture's attachments.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"

namespace tacho::report {

// `lines`: safe to print. `source`: the profile's name.
Result<format::Attachment> attach_comments(const std::vector<std::string>& lines, const std::string& source);
// The lines, safe to print; none if there are no comments, or more than 1 MiB.
std::vector<std::string> attached_comments(const format::Features& features);

}  // namespace tacho::report
