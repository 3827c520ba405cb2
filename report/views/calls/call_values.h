// Arguments and return values of calls as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/decode/prototype_text.h"
#include "report/output/field_sinks.h"
#include "report/views/calls/call_list.h"

namespace tacho::report {

// Arguments and return values of calls, formatted by the types in the functions' prototypes.
class CallValues {
 public:
  // Both must outlive this.
  CallValues(const CallTypes& types, const CallList& list) : types_(&types), list_(&list) {}

  // "n=3, line=\"a b\""; empty: no arguments, or the prototype is unknown.
  std::string arguments(const Call& call) const;
  // "12"; empty: no return value, or the prototype is unknown.
  std::string returned(const Call& call) const;
  // Both as JSON fields: a list of objects (name, type, value), and one object.
  void describe_in_order(JsonFields& to, const Call& call) const;
  // Both as JSON fields that have the names of the arguments, and "returned".
  void describe_by_name(JsonFields& to, const Call& call) const;
  // The prototype of the call's function; null when unknown.
  const Prototype* prototype(const Call& call) const { return types_->prototype_of(list_->function(call)); }

 private:
  struct Held {  // the recorded values of one call
    std::vector<std::optional<std::uint64_t>> registers;
    std::vector<std::optional<std::string_view>> texts;  // nullopt: it could not be read
    std::optional<std::uint64_t> returned;
    std::optional<std::string_view> returned_text;
  };
  struct Shown {
    const symbolize::Argument* argument = nullptr;
    std::optional<std::uint64_t> bits;  // nullopt: it is in no recorded register
    std::optional<std::string_view> text;
  };
  Held held(const Call& call) const;
  std::vector<Shown> shown(const Call& call, const Held& held) const;

  const CallTypes* types_;
  const CallList* list_;
};

}  // namespace tacho::report
