// Layout of a summary's map (SUMMARY() in tacho/event.h): how its entries are converted to samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/object/btf_schema.h"
#include "format/base/cursor.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

class SummaryLayout {
 public:
  // `key_bytes` and `value_bytes`: the map's sizes, for types that are missing in BTF.
  SummaryLayout(const SummaryTypes& types, std::size_t key_bytes, std::size_t value_bytes);

  // Schema of the samples' payloads. Roles that views know: key, value, count, sum.
  const format::PayloadSchema& schema() const { return schema_; }
  bool has_stack() const { return !stacks_.empty(); }
  bool has_cgroup() const { return cgroup_.has_value(); }
  // Whether it has a number that grows and shrinks (ROLE("live")), of which only the last value is reported.
  bool is_live() const { return live_ || live_count_; }
  // Names of stack maps, one for each member with a stack id; empty name: the object's only stack map.
  std::vector<std::string> stack_maps() const;
  // Bytes of these stack ids, in the same order: 4 or 8.
  std::vector<std::uint32_t> stack_key_bytes() const;

  struct Sample {
    std::vector<std::byte> payload;
    std::uint64_t period = 1;
    std::optional<std::uint32_t> process, thread;
    std::uint64_t cgroup = 0;  // id; 0: unknown
    // Stack ids, in the order of stack_maps(): from bpf_get_stackid(), or with 64 bits a key of the program's
    // own. 0 and negative: none.
    std::vector<std::int64_t> stacks;
  };
  // Calls `sink` with a sample for each number that has grown since `before`, the earlier value, which is
  // empty for a new key.
  void expand(format::Bytes key, format::Bytes value, format::Bytes before,
              const std::function<void(const Sample&)>& sink) const;
  // Adds the value of another CPU to `sum`.
  void add_up(std::span<std::byte> sum, format::Bytes value) const;

 private:
  enum class Kind : std::uint8_t { Copied, Counted, Live, Largest, Log2, Linear };
  struct Part {
    format::PayloadField from;  // in the key or the value
    bool is_key = false;
    Kind kind = Kind::Copied;
    std::uint64_t step = 1;      // Linear
    std::size_t to = 0;          // offset in the payload
    std::uint32_t to_bytes = 0;  // of one element there
    bool is_slot_array() const { return !is_key && (kind == Kind::Log2 || kind == Kind::Linear); }
  };
  struct StackId {
    format::PayloadField from;
    bool is_key = false;
    std::string map;
  };

  void add_fields(const std::optional<format::PayloadSchema>& described, std::size_t bytes, bool is_key);
  void add_field(const format::PayloadField& field, bool is_key);
  void append(format::PayloadField field, Part part);
  std::string free_name(std::string name, bool is_key) const;
  void put_part(const Part& part, format::Bytes key, format::Bytes value, format::Bytes before,
                Sample& sample) const;
  // Fills `sample`. False: nothing has changed.
  bool fill(format::Bytes key, format::Bytes value, format::Bytes before, Sample& sample) const;

  format::PayloadSchema schema_;
  std::vector<Part> parts_;
  std::vector<StackId> stacks_;
  std::optional<std::size_t> count_, sum_, live_, live_count_;  // of parts_
  std::optional<format::PayloadField> process_, thread_, cgroup_;
  bool has_slot_array_ = false;
};

}  // namespace tacho::bpf
