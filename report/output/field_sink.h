// Where described fields go: one interface for the line of text and the JSON object of `tacho dump`.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/base/cursor.h"

namespace tacho::report {

// Names are documented in docs/capture-format.md ("Names of fields"). Within a list, names are empty.
class FieldSink {
 public:
  virtual ~FieldSink() = default;
  virtual void number(std::string_view name, std::uint64_t value) = 0;
  virtual void signed_number(std::string_view name, std::int64_t value) = 0;
  virtual void real(std::string_view name, double value) = 0;
  // An address, a mask: shown in hexadecimal.
  virtual void hex(std::string_view name, std::uint64_t value) = 0;
  virtual void text(std::string_view name, std::string_view value) = 0;
  virtual void bytes(std::string_view name, format::Bytes value) = 0;
  virtual void flag(std::string_view name, bool value) = 0;
  virtual void begin_list(std::string_view name) = 0;
  virtual void end_list() = 0;
  virtual void begin_object(std::string_view name) = 0;
  virtual void end_object() = 0;
};

}  // namespace tacho::report
