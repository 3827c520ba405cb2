#include "format/container/simpleperf_start.h"

#include <string>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/container/record_search.h"
#include "format/extensions/attachment.h"

namespace tacho::format {

namespace {

constexpr std::uint32_t kKernelSymbol = 32769, kSplit = 32772, kSplitEnd = 32773, kTracingData = 32777;

constexpr int kMostRecords = 4096;  // the symbols of a kernel take about a hundred

// The record with /proc/kallsyms.
Result<> take_kallsyms(Bytes text, Features& features) {
  if (text.empty() || features.attachment(kKallsymsAttachment) != nullptr) return Done{};
  auto packed = pack_attachment(std::string(kKallsymsAttachment), "/proc/kallsyms", text);
  if (!packed) return std::move(packed.error());
  features.attachments.push_back(std::move(*packed));
  features.present.set(abi::kFeatureAttachments);
  return Done{};
}

// A whole record: simpleperf keeps the upper half of the size in the field misc.
Result<> take(Cursor record, Features& features) {
  const std::uint32_t type = record.u32();
  record.u32();  // its size
  if (type != kKernelSymbol && type != kTracingData) return Done{};
  const Bytes content = record.take_bytes(record.u32());  // padding follows
  if (record.failed()) return Error{"record of type " + std::to_string(type) + " is cut short"};
  if (type == kKernelSymbol) return take_kallsyms(content, features);
  if (features.present[abi::kFeatureTracingData]) return Done{};
  return read_feature(abi::kFeatureTracingData, record.over(content), features);
}

}  // namespace

void read_simpleperf_start(int fd, const FileSection& data, std::endian order, Features& features,
                           Diagnostics& diagnostics) {
  std::uint64_t offset = data.offset, left = data.size;
  std::vector<std::byte> pieces;
  for (int i = 0; i < kMostRecords && left >= kRecordHeaderSize; ++i) {
    const auto head = read_at(fd, offset, kRecordHeaderSize);
    if (!head || head->size() < kRecordHeaderSize) return;
    const RecordHeader header = record_header(*head, order);
    const std::size_t size = header.size;
    if (!is_simpleperf_type(header.type) || !is_possible(header) || size > left) return;
    const auto record = read_at(fd, offset, size);
    if (!record || record->size() < size) return;
    if (header.type == kSplit) {
      pieces.insert(pieces.end(), record->begin() + kRecordHeaderSize, record->end());
    } else {
      auto taken = take(Cursor(header.type == kSplitEnd ? pieces : *record, order), features);
      if (!taken) diagnostics.add_finding(Damage::BadFeature, offset, taken.error().what);
      pieces.clear();
    }
    offset += size;
    left -= size;
  }
}

}  // namespace tacho::format
