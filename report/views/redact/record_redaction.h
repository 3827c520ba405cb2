// The records of a capture, redacted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/aliases.h"
#include "report/kaslr_remap.h"
#include "report/redaction.h"
#include "report/views/redact/payload_redaction.h"
#include "report/views/redact/unwound_chains.h"

namespace tacho::report {

// Redacts the records of a capture.
class RecordRedaction {
 public:
  // `events` and `features` are those of the input. All arguments must outlive this. `time_shift` (ns) is
  // subtracted from each time. `chains` has the call chains of copied stacks; null: they are dropped with the
  // stacks.
  RecordRedaction(const format::EventSet& events, const format::Features& features,
                  const Redaction& redaction, const Aliases& aliases, const KaslrRemap& kernel,
                  std::uint64_t time_shift, const UnwoundChains* chains)
      : events_(&events),
        redaction_(&redaction),
        aliases_(&aliases),
        kernel_(&kernel),
        payloads_(events, features, redaction, aliases, kernel),
        time_shift_(time_shift),
        chains_(chains) {}

  // The redacted record, in `out`; nullopt: dropped. Only known fields are copied; other bytes and records of
  // unknown types are dropped.
  std::optional<format::RecordView> change(const format::RecordView& record, format::ByteWriter& out);
  // The number of records that were dropped because their type is unknown or the result would be too long.
  std::uint64_t not_understood() const { return not_understood_; }

 private:
  // Bytes of a record that are replaced by `words`.
  struct Cut {
    std::size_t begin = 0, size = 0;
    std::vector<std::uint64_t> words{0};
  };
  bool change_sample(const format::RecordView& record, std::size_t event, format::ByteWriter& out);
  void change_registers(const format::Registers& registers, const format::RecordView& record);
  void add_unwound(const format::Sample& sample, const format::RecordView& record);
  void change_user_stack(const format::Sample& sample, const format::RecordView& record);
  void change_words(const format::U64Array& words, const format::RecordView& record, std::size_t step);
  bool change_kernel_record(const format::RecordView& record, const format::EventAttr& attr,
                            format::ByteWriter& out);
  bool change_own_record(const format::RecordView& record, format::ByteWriter& out);
  bool with_body(const format::RecordView& record, std::size_t size, format::ByteWriter& out);
  bool change_mapping(const format::RecordView& record, const format::EventAttr& attr,
                      format::ByteWriter& out);
  bool change_namespaces(const format::RecordView& record, std::size_t trailer, format::ByteWriter& out);
  void change_thread_map(const format::RecordView& record, format::ByteWriter& out);
  // Writes the first `fixed` bytes of the record, `text`, and the last `trailer` bytes. False: the record is
  // too short.
  static bool with_text(const format::RecordView& record, std::size_t fixed, std::string_view text,
                        std::size_t trailer, format::ByteWriter& out);
  std::string comm(std::string_view name) const;
  std::string container(std::string_view path) const;
  std::uint64_t moved(std::uint64_t address) const {
    return redaction_->hides(Content::Kernel) ? kernel_->moved(address) : address;
  }
  // Changes one word of `bytes`, if they are long enough.
  template <class Change>
  static void patch(std::vector<std::byte>& bytes, std::size_t at, Change&& change);
  void shift_time(std::vector<std::byte>& bytes, std::size_t at) const;

  const format::EventSet* events_;
  const Redaction* redaction_;
  const Aliases* aliases_;
  const KaslrRemap* kernel_;
  PayloadRedaction payloads_;
  std::uint64_t time_shift_;
  const UnwoundChains* chains_;
  std::uint64_t not_understood_ = 0;
  format::SampleParser samples_;
  std::vector<std::byte> bytes_;  // scratch: a copy of the record, changed in place
  std::vector<Cut> cuts_;
};

}  // namespace tacho::report
