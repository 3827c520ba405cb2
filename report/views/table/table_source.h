// Chooses the events of a table and binds its keys and its value to each of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/expression.h"
#include "format/base/result.h"
#include "report/profile/field_key.h"
#include "report/query/expressions.h"
#include "report/samples/session.h"

namespace tacho::report {

struct TableQuestion {
  std::string event;  // empty: every event that has the keys and the value
  std::string by;     // names of keys; empty: default_table_keys(), else comm
  std::optional<cli::Expression> value;
  bool only_counts = false;  // the table shows only counts, so it needs no default value
};

// One event of the table.
struct TableEvent {
  std::string name;
  std::vector<FieldKey> keys;
  std::optional<BoundExpression> value;  // nullopt: only counted
  const PayloadField* count = nullptr;   // number of values in a sample; null: each is one value
  ValueOfMany how;                       // how samples are added; `sum` only without --value
};

class TableSource {
 public:
  // To be called once the session's events are known. Refused when no event has the fields. Both arguments
  // must outlive this, which must not be moved afterwards.
  Result<> find(const TableQuestion& question, Session& session);

  // The event at this index; null: not in the table.
  TableEvent* event(std::size_t index);
  // Names of the keys; the first one is "event" when the table has several events.
  const std::vector<std::string>& key_names() const { return key_names_; }
  bool has_values() const;
  // A note about events that lack the keys (not in the table) or the value (only counted); may be empty.
  std::string what_is_left_out() const;
  // A note when sums are made from the lowest values of slots; else empty.
  std::string what_slots_hide() const;
  // "bigread: bytes in bytes"
  std::string title(Names names) const;

 private:
  Result<TableEvent> bind(const TableQuestion& question, const format::Event& event,
                          const PayloadSchema* schema);
  Result<std::optional<BoundExpression>> bind_value(const TableQuestion& question, const format::Event& event,
                                                    const PayloadSchema* schema) const;
  void take_default_value(const PayloadSchema* schema);
  bool has_keys(const format::Event& event, const PayloadSchema* schema) const;
  std::vector<std::string> keys_of(const TableQuestion& question, Session& session);

  std::optional<EventSchemas> schemas_;
  PayloadSchema empty_;
  std::vector<bool> asked_;  // by event: --event has it
  std::vector<std::optional<TableEvent>> events_;
  std::vector<std::string> key_names_;
  std::vector<std::string> left_out_, only_counted_;  // names of events
  std::optional<cli::Expression> default_value_;
  const cli::Expression* value_ = nullptr;
  std::string unit_;
};

}  // namespace tacho::report
