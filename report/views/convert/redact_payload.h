// The payload of a sample without its texts.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "format/container/features.h"
#include "format/records/event_set.h"
#include "report/aliases.h"
#include "report/decode/payload.h"
#include "report/kernel_places.h"
#include "report/redaction.h"

namespace tacho::report {

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

}  // namespace tacho::report
