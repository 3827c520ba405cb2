// Calls of functions, read from samples: a payload with a time (its value), a function
// (ROLE("function")) and a depth (ROLE("depth")), taken when the call returned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "report/decode/payload.h"
#include "report/decode/prototype_text.h"
#include "report/samples/session.h"

namespace tacho::report {

// The types of functions that a capture has, by where they begin.

// Where a function begins: in which file, and how far from its first byte.
struct CallFunction {
  std::string_view file;
  std::uint64_t offset = 0;
};

class CallTypes {
 public:
  // Attachments that cannot be read, and those that would take too much memory beside the ones before them,
  // are as if they were not there.
  explicit CallTypes(const format::Features& features);
  // Null: nothing is known.
  const Prototype* of(const CallFunction& function) const;

 private:
  // By the file's path.
  std::unordered_map<std::string, std::unordered_map<std::uint64_t, Prototype>> prototypes_;
};

struct Call {
  std::uint64_t begin = 0, end = 0;  // ns
  std::uint32_t pid = 0, tid = 0;
  std::uint32_t name = 0, comm = 0;  // texts of CallList
  std::uint32_t depth = 0;           // 1: no followed function called it
  std::uint32_t more = 0;            // of CallList::values: arguments and what was returned
  std::uint32_t function = 0;        // of CallList::functions
};

// What else a call has: fields of its payload, by their names.
struct CallValue {
  // By the field's role: what the registers for arguments and for what is returned held (an argument's is
  // `place`), the texts that they pointed to (`place`: the how-manieth), and which of these could not be
  // read: bit 0 and 1 of the arguments', bit 2 what is returned.
  enum class Is : std::uint8_t {
    Other,
    Argument,
    Returned,
    ArgumentText,
    ReturnedText,
    Unread
  } is = Is::Other;
  std::uint8_t place = 0;
  std::uint32_t name = 0;
  bool is_number = false;   // and no address or the like, which is shown in hex
  std::uint64_t value = 0;  // of a text its number
  bool is_text() const { return is == Is::ArgumentText || is == Is::ReturnedText; }
};

class CallList : public Sink {
 public:
  // With `object` only calls that have it among their values; where `types`, which must outlive this, tells
  // what a function is called with and returns, among those.
  CallList(Session& session, std::optional<std::uint64_t> object, const CallTypes& types)
      : session_(&session), object_(object), types_(&types), schemas_(session.events(), session.features()) {}

  // Once the events are known. An error of the use: none of them is a call.
  Result<> find_events();
  Flow on_sample(const ResolvedSample& sample) override;

  // Once all have come: in the order of begin; of equal ones the outer first.
  void sort();
  const std::vector<Call>& calls() const { return calls_; }
  const std::string& text(std::uint32_t number) const { return *texts_[number]; }
  const CallFunction& function(const Call& call) const { return functions_[call.function]; }
  const std::vector<CallFunction>& functions() const { return functions_; }  // by number
  // Its arguments and what it returned, as far as it has them.
  std::vector<CallValue> values(const Call& call) const;

 private:
  struct EventFacts {
    const PayloadField *time = nullptr, *function = nullptr, *depth = nullptr;
    struct Other {
      const PayloadField* field = nullptr;
      std::uint32_t element = 0;  // of a list
      CallValue shape;            // all but its value
    };
    std::vector<Other> others;
  };
  Result<> add_others(const PayloadSchema& schema, EventFacts& facts);
  std::uint32_t function_of(const symbolize::Frame* frame, std::uint64_t address);
  void move_to_callees();
  bool has_object(const Prototype* prototype, const CallValue& value) const;
  std::uint32_t number_of(std::string text);

  Session* session_;
  std::optional<std::uint64_t> object_;
  const CallTypes* types_;
  EventSchemas schemas_;
  std::vector<std::optional<EventFacts>> events_;
  std::vector<Call> calls_;
  std::vector<CallFunction> functions_;
  std::map<std::pair<std::string_view, std::uint64_t>, std::uint32_t> function_numbers_;
  std::vector<CallValue> values_;
  std::vector<std::size_t> values_end_;  // by Call::more: where in values_ its values end
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;  // keys of numbers_
};

// Who called whom: calls of each thread, each below the call that it is inside of.

// By the number of a call in CallList::calls(), once these are sorted.
struct Callers {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> callers;       // kNone: no followed function called it
  std::vector<std::uint64_t> in_callees;    // ns of its time
  std::vector<bool> has_callees, recurses;  // recurses: a call of its own function is above it
};

Callers find_callers(const CallList& list);

// Begins and ends of calls, in time; what belongs together stands together as long as its thread alone is
// looked at.
struct CallStep {
  std::uint64_t time = 0;  // ns
  std::uint32_t call = 0;
  std::uint32_t level = 0;  // calls around it
  bool is_end = false;
};
std::vector<CallStep> call_steps(const CallList& list, const Callers& tree);

}  // namespace tacho::report
