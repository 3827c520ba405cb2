// The fields of an event (a BPF payload or a tracepoint's record), each with its type, into a sink.
#pragma once

#include "report/decode/payload.h"
#include "report/output/field_sink.h"

namespace tacho::report {

// Numbers as numbers, addresses and masks in hexadecimal, an enum's values by name where the type has one,
// arrays as lists. Fields beyond the end of the payload are left out. Names and texts are the capture's own:
// the sink makes them safe.
void describe_payload(FieldSink& to, const PayloadSchema& schema, Bytes payload, std::endian order);

}  // namespace tacho::report
