// Which pieces of a sample `script` prints: perf's defaults by event type, changed by -F.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/event_set.h"
#include "format/result.h"

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
};

// A set of fields.
class Fields {
 public:
  constexpr Fields() = default;
  constexpr Fields(std::initializer_list<Field> fields) {
    for (const Field field : fields) add(field);
  }
  constexpr bool has(Field field) const { return (bits_ >> static_cast<unsigned>(field) & 1) != 0; }
  constexpr void add(Field field) { bits_ |= 1U << static_cast<unsigned>(field); }
  constexpr void remove(Field field) { bits_ &= ~(1U << static_cast<unsigned>(field)); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint32_t bits() const { return bits_; }

 private:
  std::uint32_t bits_ = 0;
};

enum class CallChains : std::uint8_t { Show, Hide };
enum class Origin : std::uint8_t { File, Pipe };

class FieldChoice {
 public:
  FieldChoice();
  // One -F: "comm,tid", "+payload,-dso", "trace:time,event". Remarks for stderr are appended to `remarks`.
  Result<> apply(std::string_view text, std::vector<std::string>& remarks);
  // Drops default fields that the events did not sample; one asked for by -F and not sampled is an error.
  Result<> settle(const format::EventSet& events, const std::vector<std::string>& event_names,
                  CallChains chains, Origin origin);

  Fields of(const format::EventAttr& attr) const;
  // True when some event's samples show it.
  bool has(Field field) const;
  // After settle(): false with -G, and when no event has call chains.
  bool shows_callchains() const { return shows_callchains_; }

 private:
  static constexpr std::size_t kTypes = 8;
  struct Choice {
    Fields shown, asked, refused;  // asked, refused: named by -F
    bool is_changed = false;
  };
  static std::size_t type_of(const format::EventAttr& attr);
  Result<> change(std::size_t type, char sign, Field field, std::string_view name, bool is_named_type,
                  std::vector<std::string>& remarks);
  void add_chains_of_pipe(const format::EventSet& events);
  Result<> check(std::size_t type, const format::Event& event, const std::string& event_name);

  std::array<Choice, kTypes> types_;
  bool shows_callchains_ = true;
};

}  // namespace tacho::report
