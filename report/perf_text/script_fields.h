// The fields that `script` prints of a sample: perf's defaults by event type, changed by -F.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/records/event_set.h"

namespace tacho::report {

enum class Field : std::uint8_t {
  Comm,
  Tid,
  Pid,
  Time,
  Cpu,
  Event,
  Trace,
  Ip,
  Sym,
  Dso,
  Addr,
  Symoff,
  Period,
  Weight,
  BpfOutput,
  Misc,
  PhysAddr,
  Payload,
  Srcline,
  Iregs,
  Uregs,
  Brstack,
  Brstacksym,
  Brstackoff,
  Brstackinsn,
  Brstackinsnlen,
  DataSrc,
  Callindent,
  Insn,
  Insnlen,
  Synth,
  Srccode,
  Ipc,
  Tod,
  DataPageSize,
  CodePageSize,
  InsLat,
  MachinePid,
  Vcpu,
  Cgroup,
};

// A set of fields.
class Fields {
 public:
  constexpr Fields() = default;
  constexpr Fields(std::initializer_list<Field> fields) {
    for (const Field field : fields) add_field(field);
  }
  constexpr bool has(Field field) const { return (bits_ >> static_cast<unsigned>(field) & 1) != 0; }
  constexpr void add_field(Field field) { bits_ |= std::uint64_t{1} << static_cast<unsigned>(field); }
  constexpr void remove(Field field) { bits_ &= ~(std::uint64_t{1} << static_cast<unsigned>(field)); }
  constexpr Fields operator|(const Fields& others) const {
    Fields all;
    all.bits_ = bits_ | others.bits_;
    return all;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has_any(const Fields& others) const { return (bits_ & others.bits_) != 0; }
  constexpr std::uint64_t bits() const { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};

enum class CallChains : std::uint8_t { Show, Hide };
enum class Origin : std::uint8_t { File, Pipe };

class FieldChoice {
 public:
  FieldChoice();
  // Applies one -F: "comm,tid", "+payload,-dso", "trace:time,event". Appends messages for stderr to
  // `remarks`.
  Result<> apply(std::string_view text, std::vector<std::string>& remarks);
  // Drops default fields that the events did not record. A field of -F that was not recorded is an error; a
  // field of -F TYPE: is dropped, as in perf, and dropped() reports it.
  Result<> settle(const format::EventSet& events, const std::vector<std::string>& event_names,
                  CallChains chains, Origin origin);

  // --as-perf: payloads are decoded only if -F has that field.
  void dump_payloads();

  Fields fields_of(const format::EventAttr& attr) const;
  // Whether -F has the field for the event's type.
  bool asks_for(const format::EventAttr& attr, Field field) const;
  // Whether -F changed the fields of the event's type.
  bool is_changed(const format::EventAttr& attr) const { return types_[type_of(attr)].is_changed; }
  // Whether the samples of any event have it.
  bool has(Field field) const;
  const std::vector<std::string>& dropped() const { return dropped_; }
  // -F flags (of processor traces), for all types of events.
  bool shows_flags() const { return shows_flags_; }
  // After settle(): false with -G, or if no event has call chains.
  bool shows_callchains() const { return shows_callchains_; }

 private:
  static constexpr std::size_t kTypes = 8;
  struct Choice {
    Fields shown;
    Fields asked, named, refused;  // by -F for all types, by -F TYPE:, by -F -FIELD
    bool is_changed = false;
  };
  Result<> apply_field(std::string_view name, char sign, std::size_t first, std::size_t last,
                       bool is_named_type, std::vector<std::string>& remarks);
  static std::size_t type_of(const format::EventAttr& attr);
  Result<> change(std::size_t type, char sign, Field field, std::string_view name, bool is_named_type,
                  std::vector<std::string>& remarks);
  void add_chains_of_pipe(const format::EventSet& events);
  Result<> check(std::size_t type, const format::Event& event, const std::string& event_name,
                 bool has_all_branches);
  Result<> check_pairs(Choice& choice, bool has_all_branches) const;

  std::array<Choice, kTypes> types_;
  std::vector<std::string> dropped_;
  bool shows_callchains_ = true;
  bool shows_flags_ = false;
};

}  // namespace tacho::report
