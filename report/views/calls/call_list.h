// Calls of functions, as samples tell of them: a payload with a time (its value), a function
// (ROLE("function")) and a depth (ROLE("depth")), taken when the call returned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/result.h"
#include "report/decode/payload.h"
#include "report/samples/session.h"

namespace tacho::report {

struct Call {
  std::uint64_t begin = 0, end = 0;  // ns
  std::uint32_t pid = 0, tid = 0;
  std::uint32_t name = 0, comm = 0;  // texts of CallList
  std::uint32_t depth = 0;           // 1: no followed function called it
  std::uint32_t more = 0;            // of CallList::values: arguments and what was returned
};

// What else a call has: fields of its payload, by their names.
struct CallValue {
  std::uint32_t name = 0;
  bool is_number = false;  // and no address or the like, which is shown in hex
  std::uint64_t value = 0;
};

class CallList : public Sink {
 public:
  // With `object` only calls that have it among their values.
  CallList(Session& session, std::optional<std::uint64_t> object)
      : session_(&session), object_(object), schemas_(session.events(), session.features()) {}

  // Once the events are known. An error of the use: none of them is a call.
  Result<> find_events();
  Flow on_sample(const ResolvedSample& sample) override;

  // Once all have come: in the order of begin; of equal ones the outer first.
  void sort();
  const std::vector<Call>& calls() const { return calls_; }
  const std::string& text(std::uint32_t number) const { return *texts_[number]; }
  // Its arguments and what it returned, as far as it has them.
  std::vector<CallValue> values(const Call& call) const;

 private:
  struct EventFacts {
    const PayloadField *time = nullptr, *function = nullptr, *depth = nullptr;
    std::vector<std::pair<const PayloadField*, std::uint32_t>> others;  // with their names
  };
  void move_to_callees();
  std::uint32_t number_of(std::string text);
  std::uint32_t name_of(const ResolvedSample& sample, std::uint64_t address);

  Session* session_;
  std::optional<std::uint64_t> object_;
  EventSchemas schemas_;
  std::vector<std::optional<EventFacts>> events_;
  std::vector<Call> calls_;
  std::vector<CallValue> values_;
  std::vector<std::size_t> values_end_;  // by Call::more: where in values_ its values end
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;  // keys of numbers_
};

}  // namespace tacho::report
