// The calls of functions in a capture, with their arguments and return values. Each call is one sample, taken
// when the function returned, whose payload has a duration (the value), a function (ROLE("function")) and a
// depth (ROLE("depth")).
#pragma once

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

// The start of a function: a file and an offset in it.
struct CallFunction {
  std::string_view file;
  std::uint64_t offset = 0;
};

// The function prototypes in a capture, by the start of the function.
class CallTypes {
 public:
  // Attachments that cannot be read or would exceed the memory limit are ignored.
  explicit CallTypes(const format::Features& features);
  // Null when the prototype is unknown.
  const Prototype* prototype_of(const CallFunction& function) const;

 private:
  // By the file's path.
  std::unordered_map<std::string, std::unordered_map<std::uint64_t, Prototype>> prototypes_;
};

struct Call {
  std::uint64_t begin = 0, end = 0;  // ns
  std::uint32_t pid = 0, tid = 0;
  std::uint32_t name = 0, comm = 0;  // indices for CallList::text()
  std::uint32_t depth = 0;           // 1: the outermost traced function
  std::uint32_t more = 0;            // index of its arguments and return value, for CallList::values()
  std::uint32_t function = 0;        // index for CallList::function()
};

// A further field of a call's payload: an argument, the return value, or any other.
struct CallValue {
  // By the field's role: a register for arguments (number `index`) or for the return value; a text that one
  // of these points to (`index` counts the texts); or a mask of texts that could not be read (bits 0 and 1:
  // arguments; bit 2: return value).
  enum class Is : std::uint8_t {
    Other,
    Argument,
    Returned,
    ArgumentText,
    ReturnedText,
    Unread
  } is = Is::Other;
  std::uint8_t index = 0;
  std::uint32_t name = 0;
  bool is_number = false;   // a number, and no address or mask, which is shown in hexadecimal
  std::uint64_t value = 0;  // of a text, its index for CallList::text()
  bool is_text() const { return is == Is::ArgumentText || is == Is::ReturnedText; }
};

class CallList : public Sink {
 public:
  // With `object`, keeps only calls that have this number among their arguments and return value (as `types`
  // gives them), or without a prototype among all values. `types` must outlive this.
  CallList(Session& session, std::optional<std::uint64_t> object, const CallTypes& types)
      : session_(&session), object_(object), types_(&types), schemas_(session.events(), session.features()) {}

  // To be called once the events are known. Refused when no event is a call.
  Result<> find_events();
  Flow on_sample(const ResolvedSample& sample) override;

  // After the last sample: sorts calls by their start, with the outer call first among equal ones.
  void sort();
  const std::vector<Call>& calls() const { return calls_; }
  // The number of samples of events that a pipe described after find_events(); they are left out.
  std::uint64_t late() const { return late_; }
  const std::string& text(std::uint32_t number) const { return *texts_[number]; }
  const CallFunction& function(const Call& call) const { return functions_[call.function]; }
  // The arguments and return value that were recorded, and its other fields.
  std::vector<CallValue> values(const Call& call) const;

 private:
  struct EventFacts {
    const PayloadField *time = nullptr, *function = nullptr, *depth = nullptr;
    struct Other {
      const PayloadField* field = nullptr;
      std::uint32_t element = 0;  // index in a list
      CallValue shape;            // without its value
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
  std::uint64_t late_ = 0;
  std::vector<std::optional<EventFacts>> events_;
  std::vector<Call> calls_;
  std::vector<CallFunction> functions_;
  std::map<std::pair<std::string_view, std::uint64_t>, std::uint32_t> function_numbers_;
  std::vector<CallValue> values_;
  std::vector<std::size_t> values_end_;  // by Call::more: end of its values in values_
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;  // keys of numbers_
};

// The call tree of each thread: for every call its caller. Indices are those of CallList::calls() after
// sort().
struct Callers {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> callers;       // kNone: no traced function called it
  std::vector<std::uint64_t> in_callees;    // ns spent in calls that it made
  std::vector<bool> has_callees, recurses;  // recurses: the same function is among its callers
};

Callers find_callers(const CallList& list);

// The starts and ends of all calls, in the order of time; within a thread, calls are nested correctly.
struct CallStep {
  std::uint64_t time = 0;  // ns
  std::uint32_t call = 0;
  std::uint32_t level = 0;  // number of calls around it
  bool is_end = false;
};
std::vector<CallStep> call_steps(const CallList& list, const Callers& tree);

}  // namespace tacho::report
