// What every sample has by itself, whatever its payload says: thread, processor, time. Views name them in
// keys and conditions; where a field of the payload has the same name, "sample." in front means these.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/decode/payload.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

struct OwnValue {
  std::string_view name;
  std::string_view unit;  // as PayloadField::unit
  bool is_text = false;
  FieldValue (*of)(const ResolvedSample&) = nullptr;
};

std::span<const OwnValue> own_values();
// By "comm" or "sample.comm"; null: there is none.
const OwnValue* find_own_value(std::string_view name);
// Whether `name` can only mean these.
bool is_own_name(std::string_view name);
// "comm, pid, tid, ...", for messages.
std::string own_value_names();

}  // namespace tacho::report
