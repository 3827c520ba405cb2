// Arguments of calls and what they returned, as their programmers see them: by the types that the capture has
// of the functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/field_sinks.h"
#include "report/views/calls/call_list.h"

namespace tacho::report {

// A register's value by its type: "-3", "true", "'x'", "KIND_A", "0x7ffe10", with `text` "\"GET /\"".
std::string value_text(const symbolize::ValueType& type, std::uint64_t bits,
                       std::optional<std::string_view> text);

class CallValues {
 public:
  // Both must outlive this.
  CallValues(const CallTypes& types, const CallList& list) : types_(&types), list_(&list) {}

  // "n=3, line=\"a b\""; empty: the function has no arguments, or it is not known which.
  std::string arguments(const Call& call) const;
  // "12"; empty: it returns nothing, or it is not known what.
  std::string returned(const Call& call) const;
  // The same as two fields: a list of objects (name, type, value), and an object.
  void describe(JsonFields& to, const Call& call) const;
  // The same as fields called like the arguments, and "returned".
  void describe_by_name(JsonFields& to, const Call& call) const;
  // What is known of the call's function; null: nothing.
  const Prototype* prototype(const Call& call) const { return types_->of(list_->function(call)); }

 private:
  struct Held {  // of one call
    std::vector<std::optional<std::uint64_t>> registers;
    std::vector<std::optional<std::string_view>> texts;  // nothing: it could not be read
    std::optional<std::uint64_t> returned;
    std::optional<std::string_view> returned_text;
  };
  struct Shown {
    const symbolize::Argument* argument = nullptr;
    std::optional<std::uint64_t> bits;  // nothing: it is in no register that was recorded
    std::optional<std::string_view> text;
  };
  Held held(const Call& call) const;
  std::vector<Shown> shown(const Call& call, const Held& held) const;

  const CallTypes* types_;
  const CallList* list_;
};

}  // namespace tacho::report
