// Groups of samples by a value that each of them has: a field of its payload or tracepoint, or its thread and
// processor.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/query/expressions.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"

namespace tacho::report {

// A value that outlives its sample; nothing when the payload ends before it.
using KeyValue = std::variant<std::monostate, std::uint64_t, std::int64_t, double, std::string>;

// Numbers by size, texts by their bytes, every double (NaN too) in one order.
std::strong_ordering compare(const KeyValue& a, const KeyValue& b);
struct KeyValuesLess {
  bool operator()(const std::vector<KeyValue>& a, const std::vector<KeyValue>& b) const;
};

KeyValue key_value(const FieldValue& value);
// As show_value() has it, but texts without quotes; "?" for a value that is not there.
std::string show_key(const PayloadField* field, const KeyValue& value, Names names);

// Names of the fields that an event is grouped by by default: those tagged role:function, else those
// tagged role:key.
std::vector<std::string> default_keys(const PayloadSchema& schema);

// The same for tables: what a role "table:KEYS" says, where there are such keys, else default_keys().
std::vector<std::string> default_table_keys(const PayloadSchema& schema);

class FieldKey {
 public:
  // A field of `schema` called `name`; else what the sample itself has (own_values()). With "sample." in
  // front it is the sample's own, whatever fields there are. The error (of the use) lists what there is;
  // `option` and `event` stand in it. `schema` must outlive the key.
  static Result<FieldKey> find(std::string_view option, std::string_view name, const PayloadSchema& schema,
                               std::string_view event);

  KeyValue value(const ResolvedSample& sample) const;
  // The same, but of an address of code or data what is called so, where that is known.
  KeyValue named_value(const ResolvedSample& sample, Resolver& resolver) const;
  std::string show(const KeyValue& value, Names names) const { return show_key(field_, value, names); }
  // A field that hides the sample's own value of the same name: worth a note to who asked for it.
  bool hides_own() const;
  const std::string& name() const { return name_; }
  const PayloadField* field() const { return field_; }  // null: the sample's own value

 private:
  std::string name_;
  const PayloadField* field_ = nullptr;
  const OwnValue* own_ = nullptr;  // set when field_ is not
};

}  // namespace tacho::report
