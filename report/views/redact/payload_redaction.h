// Payloads of samples, redacted.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "format/container/features.h"
#include "format/records/event_set.h"
#include "report/aliases.h"
#include "report/decode/payload.h"
#include "report/kaslr_remap.h"
#include "report/redaction.h"

namespace tacho::report {

// Redacts the raw data of samples: payloads of BPF events and tracepoints.
class PayloadRedaction {
 public:
  // `events` and `features` are those of the input. All arguments must outlive this.
  PayloadRedaction(const format::EventSet& events, const format::Features& features,
                   const Redaction& redaction, const Aliases& aliases, const KaslrRemap& kernel)
      : schemas_(events, features),
        events_(&events),
        redaction_(&redaction),
        aliases_(&aliases),
        kernel_(&kernel) {}

  // Changes PERF_SAMPLE_RAW (in this machine's byte order) in place: texts and byte arrays become aliases,
  // addresses of kernel code are moved, other kernel addresses become aliases, and all other bytes zero.
  void change(std::size_t event, std::span<std::byte> raw);

 private:
  void copy_field(const PayloadField& field, std::span<std::byte> raw);
  void hide_text(const PayloadField& field, std::span<std::byte> raw);
  void hide(std::span<std::byte> bytes, format::FieldKind kind);
  void move_addresses(const PayloadField& field, std::span<std::byte> bytes);

  EventSchemas schemas_;
  const format::EventSet* events_;
  const Redaction* redaction_;
  const Aliases* aliases_;
  const KaslrRemap* kernel_;
  std::vector<std::byte> before_;  // scratch
};

}  // namespace tacho::report
