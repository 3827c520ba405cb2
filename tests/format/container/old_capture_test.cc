// Captures as perf of Linux 2.6.31 to 3.9 wrote them, in either byte order.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/container/capture_reader.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

using test::TemporaryFile;

// Writes fields in this machine's byte order or in the other one.
class OldWriter {
 public:
  explicit OldWriter(bool is_swapped) : is_swapped_(is_swapped) {}
  OldWriter& u16(std::uint16_t value) {
    out_.u16(is_swapped_ ? Cursor::swapped(value) : value);
    return *this;
  }
  OldWriter& u32(std::uint32_t value) {
    out_.u32(is_swapped_ ? Cursor::swapped(value) : value);
    return *this;
  }
  OldWriter& u64(std::uint64_t value) {
    out_.u64(is_swapped_ ? Cursor::swapped(value) : value);
    return *this;
  }
  OldWriter& record(std::uint32_t type, std::uint16_t misc, std::uint16_t size) {
    return u32(type).u16(misc).u16(size);
  }
  OldWriter& text(std::string_view value, std::size_t size) {
    out_.bytes(std::as_bytes(std::span(value)));
    out_.zeros(size - value.size());
    return *this;
  }
  OldWriter& bytes(Bytes bytes) {
    out_.bytes(bytes);
    return *this;
  }
  std::size_t size() const { return out_.size(); }
  Bytes view() const { return out_.view(); }

 private:
  ByteWriter out_;
  bool is_swapped_;
};

constexpr std::string_view kVersion1 = "PERFFILE";
constexpr std::uint64_t kTracepointId = 57;
constexpr std::uint16_t kForkSize = 24;  // without a time, as in 2.6.31

// What differs between versions.
struct Form {
  bool is_swapped = false;
  bool is_version_1 = true;
  bool has_features = true;  // 2.6.31 has none
  bool is_32_bit = false;    // the words of the feature bitmap
};

// An attr of 64 bytes without sample_id_all.
void write_attr(OldWriter& out, std::uint32_t type, std::uint64_t config, std::uint64_t sample_type) {
  out.u32(type).u32(64).u64(config).u64(1).u64(sample_type).u64(0).u64(0).u64(0).u64(0);
}

// A clock and a tracepoint with other fields; a mapping, a fork without a time, a sample of each event.
std::vector<std::byte> old_records(const Form& form) {
  OldWriter out(form.is_swapped);
  out.record(abi::kRecordMmap, abi::kCpumodeUser, 48).u32(7).u32(7).u64(0x1000).u64(0x1000).u64(0);
  out.text("/bin/x", 8);
  out.record(abi::kRecordFork, 0, kForkSize).u32(8).u32(7).u32(8).u32(7);
  out.record(abi::kRecordSample, abi::kCpumodeUser, 40).u64(0x1010).u32(7).u32(7).u64(500).u64(11);
  out.record(abi::kRecordSample, abi::kCpumodeUser, 48).u64(0x1020).u32(8).u32(8).u64(600).u64(12);
  out.u32(4).u32(0xabcd);
  const Bytes all = out.view();
  return {all.begin(), all.end()};
}

// An entry of BUILD_ID without pid (2.6.32), of 20 bytes id, padded to 24, and a name.
void write_build_id(OldWriter& out, std::string_view name) {
  out.record(abi::kRecordBuildId, abi::kCpumodeKernel, 8 + 24 + 64);
  out.text(std::string(20, '\x41'), 24).text(name, 64);
}

std::vector<std::byte> old_file(const Form& form) {
  constexpr std::uint64_t kUsual = abi::kSampleIp | abi::kSampleTid | abi::kSampleTime | abi::kSampleId;
  const std::uint64_t head_size = form.has_features ? 104 : 72;
  const std::uint64_t ids_at = head_size, attrs_at = ids_at + 16, types_at = attrs_at + 160;
  const std::uint64_t data_at = types_at + 72;
  const std::vector<std::byte> data = old_records(form);
  OldWriter out(form.is_swapped);
  if (form.is_version_1)
    out.text(kVersion1, kVersion1.size());
  else
    out.u64(abi::kMagic);
  out.u64(head_size).u64(80).u64(attrs_at).u64(160).u64(data_at).u64(data.size()).u64(types_at).u64(72);
  constexpr std::uint32_t kBuildIdBit = 1U << abi::kFeatureBuildId;
  if (form.has_features && form.is_32_bit)
    out.u32(kBuildIdBit).u32(0).u64(0).u64(0).u64(0);
  else if (form.has_features)
    out.u64(kBuildIdBit).u64(0).u64(0).u64(0);
  out.u64(11).u64(12);
  write_attr(out, abi::kSoftware, abi::kCpuClock, kUsual);
  out.u64(ids_at).u64(8);
  write_attr(out, abi::kTracepoint, kTracepointId, kUsual | abi::kSampleRaw);
  out.u64(ids_at + 8).u64(8);
  out.u64(kTracepointId).text("sched:sched_switch", 64);
  out.bytes(data);
  if (form.has_features) {
    const std::uint64_t body_at = out.size() + 16;
    OldWriter body(form.is_swapped);
    write_build_id(body, "[kernel.kallsyms]");
    write_build_id(body, "/bin/x");
    out.u64(body_at).u64(body.size()).bytes(body.view());
  }
  const Bytes all = out.view();
  return {all.begin(), all.end()};
}

// What a reader finds, as text.
std::string what_is_read(Bytes bytes) {
  const TemporaryFile file(bytes);
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  if (!reader) return reader.error().what;
  std::string found;
  while (const auto view = reader->next_record()) {
    const auto event = reader->events().event_of(*view);
    if (!event) return found + "a record of no event";
    const auto record = parse_record(*view, reader->events()[*event].attr);
    if (!record && view->type != abi::kRecordSample) return found + record.error().what;
    if (view->type == abi::kRecordSample)
      found += "sample of " + reader->events()[*event].name + "\n";
    else if (const auto* const fork = std::get_if<TaskRecord>(&*record))
      found += "fork of " + std::to_string(fork->parent_pid) + " at " + std::to_string(fork->time) + "\n";
    else if (const auto* const mapping = std::get_if<MmapRecord>(&*record))
      found += "mapping of " + std::string(mapping->filename) + "\n";
  }
  for (const BuildIdEntry& entry : reader->features().environment.build_ids)
    found += entry.build_id.hex().substr(0, 4) + " " + entry.filename + "\n";
  for (const auto& finding : diagnostics.findings()) found += Diagnostics::finding_text(finding) + "\n";
  return found;
}

constexpr std::string_view kOldRecords =
    "mapping of /bin/x\nfork of 7 at 0\nsample of cpu-clock:HG\nsample of sched:sched_switch\n";
constexpr std::string_view kBuildIds = "4141 [kernel.kallsyms]\n4141 /bin/x\n";

class OldCaptures : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BothByteOrders, OldCaptures, testing::Bool());

TEST_P(OldCaptures, AreReadWithTheMagicUntil2012) {
  const std::string whole = std::string(kOldRecords) + std::string(kBuildIds);
  EXPECT_EQ(what_is_read(old_file({.is_swapped = GetParam()})), whole);
  EXPECT_EQ(what_is_read(old_file({.is_swapped = GetParam(), .is_version_1 = false})), whole);
  EXPECT_EQ(what_is_read(old_file({.is_swapped = GetParam(), .has_features = false})), kOldRecords)
      << "the header of 72 bytes of 2.6.31";
}

TEST_P(OldCaptures, TheFeaturesOf32BitRecordersAreRead) {
  EXPECT_EQ(what_is_read(old_file({.is_swapped = GetParam(), .is_32_bit = true})),
            std::string(kOldRecords) + std::string(kBuildIds))
      << "without HOSTNAME, which is newer";
}

TEST_P(OldCaptures, APipeHasTheNamesOfItsTracepoints) {
  OldWriter out(GetParam());
  out.text(kVersion1, kVersion1.size()).u64(16);
  out.record(abi::kRecordHeaderAttr, 0, 8 + 64 + 8);
  write_attr(out, abi::kTracepoint, kTracepointId, abi::kSampleIp | abi::kSampleTid | abi::kSampleTime);
  out.u64(11);
  out.record(abi::kRecordEventType, 0, 8 + 72).u64(kTracepointId).text("sched:sched_switch", 64);
  out.record(abi::kRecordSample, abi::kCpumodeUser, 32).u64(0x1010).u32(7).u32(7).u64(500);
  EXPECT_EQ(what_is_read(out.view()), "sample of sched:sched_switch\n");
}

}  // namespace
}  // namespace tacho::format
