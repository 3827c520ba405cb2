// RootFields: fields of tracepoints and payloads as root frames of stacks (--by holder).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/profile/field_key.h"
#include "report/query/root_frames.h"
#include "report/samples/session.h"

namespace tacho::report {

class RootFields {
 public:
  // `session` must outlive this; its events may be unknown yet.
  explicit RootFields(Session& session)
      : session_(&session), schemas_(session.events(), session.features()) {}

  // The name of a root frame: unchecked bytes. Texts, enumerators and symbols stand alone, other numbers
  // after the field's name; "[no holder]": the event lacks the field, or it is empty.
  std::string text(const std::string& field, const ResolvedSample& sample);
  // Once the samples are read: an error if no event of the capture has one of the fields.
  Result<> check(std::string_view option, std::span<const RootFrame> roots);

 private:
  const std::optional<FieldKey>& key_of(const std::string& field, std::size_t event);

  Session* session_;
  EventSchemas schemas_;
  std::map<std::pair<std::string, std::size_t>, std::optional<FieldKey>> keys_;  // by field and event
};

}  // namespace tacho::report
