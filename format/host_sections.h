// Header sections that tell about the host's hardware and the events' groups: a reader and a writer for each,
// as the table in features.cc wants them. A writer returns false when there is nothing to write.
#pragma once

#include "format/features.h"

namespace tacho::format {

Result<> read_cpus(Cursor& in, Features& out);
bool write_cpus(const Features& from, ByteWriter& out);
Result<> read_cpu_topology(Cursor& in, Features& out);
bool write_cpu_topology(const Features& from, ByteWriter& out);
Result<> read_numa(Cursor& in, Features& out);
bool write_numa(const Features& from, ByteWriter& out);
Result<> read_pmus(Cursor& in, Features& out);
bool write_pmus(const Features& from, ByteWriter& out);
Result<> read_groups(Cursor& in, Features& out);
bool write_groups(const Features& from, ByteWriter& out);
Result<> read_caches(Cursor& in, Features& out);
bool write_caches(const Features& from, ByteWriter& out);
Result<> read_memory(Cursor& in, Features& out);
bool write_memory(const Features& from, ByteWriter& out);
Result<> read_pmu_caps(Cursor& in, Features& out);
bool write_pmu_caps(const Features& from, ByteWriter& out);
Result<> read_clock_data(Cursor& in, Features& out);
bool write_clock_data(const Features& from, ByteWriter& out);
Result<> read_machine(Cursor& in, Features& out);
bool write_machine(const Features& from, ByteWriter& out);

}  // namespace tacho::format
