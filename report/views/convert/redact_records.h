// The records of a capture without what is to be hidden.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/aliases.h"
#include "report/decode/payload.h"
#include "report/redaction.h"
#include "report/views/convert/convert_unwinding.h"

namespace tacho::report {

// The payload of a sample without its texts.

class PayloadRedaction {
 public:
  // All of it must outlive this; events and features are those of the capture that is read.
  PayloadRedaction(const format::EventSet& events, const format::Features& features,
                   const Redaction& redaction, const Aliases& aliases, const KernelPlaces& kernel)
      : schemas_(events, features),
        events_(&events),
        redaction_(&redaction),
        aliases_(&aliases),
        kernel_(&kernel) {}

  // Changes RAW, in this machine's byte order, in its place. Of texts and arrays of bytes only an alias
  // stays, kernel addresses of code become its new ones, and an alias of others. What no field describes
  // becomes zero.
  void change(std::size_t event, std::span<std::byte> raw);

 private:
  void copy_place(const PayloadField& field, std::span<std::byte> raw);
  void hide_text(const PayloadField& field, std::span<std::byte> raw);
  void hide(std::span<std::byte> bytes, format::FieldKind kind);
  void move_addresses(const PayloadField& field, std::span<std::byte> place);

  EventSchemas schemas_;
  const format::EventSet* events_;
  const Redaction* redaction_;
  const Aliases* aliases_;
  const KernelPlaces* kernel_;
  std::vector<std::byte> before_;  // scratch
};

// A capture of which only some processes are to be given away: what is of others goes.

class RedactProcesses {
 public:
  // None: all stay.
  explicit RedactProcesses(const std::vector<std::uint32_t>& pids) : pids_(pids.begin(), pids.end()) {}

  // Before anything else, every record: what the processes that stay have mapped.
  void see(const format::RecordView& record, const format::EventSet& events);
  // Records of others go, and so do samples that do not say whose they are, lists of threads and AUX traces.
  // Records that are of no process stay: the kernel's mappings and functions, cgroups, lost events.
  bool keeps(const format::RecordView& record, const format::EventSet& events) const;
  // Takes out perf maps of others, the packed symbols and build ids of files that no remaining process has
  // mapped, and lists of processes. The kernel's stay. An error when the symbol pack cannot be read.
  Result<> reduce(format::Features& features) const;

 private:
  bool is_kept(std::uint32_t pid) const { return pids_.contains(pid); }
  bool is_mapped(std::string_view path) const;
  bool keeps_own_record(const format::RecordView& record) const;
  Result<> reduce_pack(std::vector<std::byte>& section) const;

  std::unordered_set<std::uint32_t> pids_;
  std::unordered_set<std::string> mapped_;  // without " (deleted)"
};

class RecordRedaction {
 public:
  // `events` and `features` are those of the records that come. All of it must outlive this. Of every record
  // `time_shift` ns are taken off its time, but of those without one. `chains` may be null: then the calls go
  // with the copied stacks that they stand in.
  RecordRedaction(const format::EventSet& events, const format::Features& features,
                  const Redaction& redaction, const Aliases& aliases, const KernelPlaces& kernel,
                  std::uint64_t time_shift, const UnwoundChains* chains)
      : events_(&events),
        redaction_(&redaction),
        aliases_(&aliases),
        kernel_(&kernel),
        payloads_(events, features, redaction, aliases, kernel),
        time_shift_(time_shift),
        chains_(chains) {}

  // The record as it may be given away, in `out`; nothing when it goes. Only fields that are known are passed
  // on: what a record has besides goes, and so do records of types that nothing is known of.
  std::optional<format::RecordView> change(const format::RecordView& record, format::ByteWriter& out);
  // Records that were dropped without being asked for, by type.
  const std::map<std::uint32_t, std::uint64_t>& not_understood() const { return not_understood_; }

 private:
  struct Cut {  // bytes of a record in place of which others stand: where nothing else is said, a word of
                // zero
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
  bool change_mapping(const format::RecordView& record, const format::EventAttr& attr,
                      format::ByteWriter& out);
  bool change_namespaces(const format::RecordView& record, std::size_t trailer, format::ByteWriter& out);
  void change_thread_map(const format::RecordView& record, format::ByteWriter& out);
  // The first `fixed` bytes of the record, the text in place of what follows, and the trailer. False: it is
  // too short for them.
  static bool with_text(const format::RecordView& record, std::size_t fixed, std::string_view text,
                        std::size_t trailer, format::ByteWriter& out);
  std::string comm(std::string_view name) const;
  std::string container(std::string_view path) const;
  std::uint64_t moved(std::uint64_t address) const {
    return redaction_->hides(Content::Kernel) ? kernel_->moved(address) : address;
  }
  // In bytes that were copied: a word, if it is there.
  template <class Change>
  static void patch(std::vector<std::byte>& bytes, std::size_t at, Change&& change);
  void shift_time(std::vector<std::byte>& bytes, std::size_t at) const;

  const format::EventSet* events_;
  const Redaction* redaction_;
  const Aliases* aliases_;
  const KernelPlaces* kernel_;
  PayloadRedaction payloads_;
  std::uint64_t time_shift_;
  const UnwoundChains* chains_;
  std::map<std::uint32_t, std::uint64_t> not_understood_;
  format::SampleParser samples_;
  std::vector<std::byte> bytes_;  // scratch: the record as it came, fields changed in their places
  std::vector<Cut> cuts_;
};

}  // namespace tacho::report
