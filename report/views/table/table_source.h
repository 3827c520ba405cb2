// Where the rows of a table come from: the keys and the value of each event that has them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/expression.h"
#include "format/base/result.h"
#include "report/profile/field_key.h"
#include "report/query/bound_expression.h"
#include "report/query/summary.h"
#include "report/samples/session.h"

namespace tacho::report {

struct TableQuestion {
  std::string event;  // empty: every event that has the keys and the value
  std::string by;     // names of keys; empty: default_table_keys(), else comm
  std::optional<cli::Expression> value;
  bool only_counts = false;  // no number of values is shown, so that none is chosen where `value` is not
};

// One event of the table.
struct TableEvent {
  std::string name;
  std::vector<FieldKey> keys;
  std::optional<BoundExpression> value;  // nothing: only counted
  const PayloadField* count = nullptr;   // how many values a sample stands for; null: each is one
  ValueOfMany how;                       // its sum only where no value was named
};

class TableSource {
 public:
  // Once the session's events are known. An error of the use: no event has the field. Both must
  // outlive this, and this stays where it is.
  Result<> find(const TableQuestion& question, Session& session);

  // By the number of the event; null: it is not in the table.
  TableEvent* event(std::size_t index);
  // Names of the keys; the first is "event" where several events are in the table.
  const std::vector<std::string>& key_names() const { return key_names_; }
  bool has_values() const;
  // Which events are not in the table, or only counted, without being refused, in words; empty: none.
  std::string what_is_left_out() const;
  // That sums are of the least values of slots, in words; empty: they are not.
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
  std::vector<bool> asked_;  // by event: --event names it
  std::vector<std::optional<TableEvent>> events_;
  std::vector<std::string> key_names_;
  std::vector<std::string> left_out_, only_counted_;  // names of events
  std::optional<cli::Expression> default_value_;
  const cli::Expression* value_ = nullptr;
  std::string unit_;
};

}  // namespace tacho::report
