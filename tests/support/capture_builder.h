// Builds captures in memory, record by record, so that a test shows its whole input. The layout is written
// out by hand here, not through CaptureWriter, so that reader and writer are not tested against each other's
// mistakes only.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/event_attr.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"

namespace tacho::test {

// A file that is gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(format::Bytes content) {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-test.XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    if (fd >= 0) ::close(fd);
    path_ = name;
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What a sample of the builder's usual event holds: IDENTIFIER|IP|TID|TIME|CPU|PERIOD, and READ (a group's
// values with ids), CALLCHAIN, RAW and BRANCH_STACK (without a hardware index) when the event's sample_type
// has them.
struct SampleFields {
  std::uint64_t id = 0;
  std::uint64_t ip = 0;
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t time = 0;  // ns
  std::uint32_t cpu = 0;
  std::uint64_t period = 1;
  std::vector<std::uint64_t> callchain;
  std::vector<std::byte> raw;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> values;    // id, value
  std::vector<std::pair<std::uint64_t, std::uint64_t>> branches;  // from, to; the newest first
  std::uint16_t misc = format::abi::kCpumodeUser;
};

inline constexpr std::uint64_t kUsualSampleType = format::abi::kSampleIdentifier | format::abi::kSampleIp |
                                                  format::abi::kSampleTid | format::abi::kSampleTime |
                                                  format::abi::kSampleCpu | format::abi::kSamplePeriod;

inline format::EventAttr software_event(std::uint64_t config, std::uint64_t more_sample_type = 0) {
  format::EventAttr attr;
  attr.type = format::abi::kSoftware;
  attr.size = format::kCompatibleAttrSize;
  attr.config = config;
  attr.sample_period = 1;
  attr.sample_type = kUsualSampleType | more_sample_type;
  attr.read_format = format::abi::kReadId | format::abi::kReadLost;
  attr.flags = format::abi::kSampleIdAll;
  return attr;
}

class CaptureBuilder {
 public:
  CaptureBuilder& event(format::EventAttr attr, std::string name, std::vector<std::uint64_t> ids) {
    attrs_.push_back({std::move(attr), std::move(name), std::move(ids)});
    return *this;
  }
  CaptureBuilder& feature(std::uint32_t bit, std::vector<std::byte> body) {
    features_.emplace_back(bit, std::move(body));
    return *this;
  }
  CaptureBuilder& text_feature(std::uint32_t bit, std::string_view text) {
    format::ByteWriter body;
    body.header_string(text);
    return feature(bit, std::move(body).take_bytes());
  }
  // Records as bytes, in order.
  format::ByteWriter& data() { return data_; }

  CaptureBuilder& comm(std::uint32_t pid, std::uint32_t tid, std::string_view name) {
    format::write_comm(data_, {pid, tid, name, false}, trailer());
    return *this;
  }
  CaptureBuilder& mmap(std::uint32_t pid, std::uint64_t start, std::uint64_t length,
                       std::uint64_t page_offset, std::string_view filename,
                       std::uint16_t cpumode = format::abi::kCpumodeUser) {
    format::MmapRecord record;
    record.pid = pid;
    record.tid = pid;
    record.start = start;
    record.length = length;
    record.page_offset = page_offset;
    record.filename = filename;
    record.protection = 5;
    format::write_mmap2(data_, record, cpumode, trailer());
    return *this;
  }
  CaptureBuilder& round() {
    format::write_mark(data_, format::abi::kRecordFinishedRound);
    return *this;
  }
  // `event`: index of an event with the usual sample type.
  CaptureBuilder& sample(const SampleFields& fields, std::size_t event = 0) {
    const format::EventAttr& attr = attrs_[event].attr;
    const std::size_t start = data_.size();
    data_.u32(format::abi::kRecordSample).u16(fields.misc).u16(0);
    data_.u64(fields.id).u64(fields.ip).u32(fields.pid).u32(fields.tid).u64(fields.time);
    data_.u32(fields.cpu).u32(0).u64(fields.period);
    if (attr.samples(format::abi::kSampleRead)) {
      data_.u64(fields.values.size());
      for (const auto& [id, value] : fields.values) data_.u64(value).u64(id);
    }
    if (attr.samples(format::abi::kSampleCallchain)) {
      data_.u64(fields.callchain.size());
      for (const std::uint64_t ip : fields.callchain) data_.u64(ip);
    }
    if (attr.samples(format::abi::kSampleRaw)) {
      const std::size_t padding = (8 - (4 + fields.raw.size()) % 8) % 8;
      data_.u32(static_cast<std::uint32_t>(fields.raw.size() + padding)).bytes(fields.raw).zeros(padding);
    }
    if (attr.samples(format::abi::kSampleBranchStack)) {
      data_.u64(fields.branches.size());
      for (const auto& [from, to] : fields.branches) data_.u64(from).u64(to).u64(0);
    }
    data_.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(data_.size() - start));
    return *this;
  }

  // The bytes of a closed perf.data file, EVENT_DESC included.
  std::vector<std::byte> file() const {
    format::ByteWriter out;
    out.zeros(104);
    std::vector<std::uint64_t> ids_at;
    for (const Attr& attr : attrs_) {
      ids_at.push_back(out.size());
      for (const std::uint64_t id : attr.ids) out.u64(id);
    }
    const std::uint64_t attrs_at = out.size();
    for (std::size_t i = 0; i < attrs_.size(); ++i) {
      format::write_event_attr(out, attrs_[i].attr, format::kCompatibleAttrSize);
      out.u64(ids_at[i]).u64(attrs_[i].ids.size() * 8);
    }
    const std::uint64_t data_at = out.size();
    out.bytes(data_.view());
    auto features = features_;
    features.emplace_back(format::abi::kFeatureEventDesc, event_desc());
    std::ranges::sort(features, {}, &std::pair<std::uint32_t, std::vector<std::byte>>::first);
    std::uint64_t body_at = out.size() + features.size() * 16;
    std::uint64_t bits[4] = {};
    for (const auto& [bit, body] : features) {
      out.u64(body_at).u64(body.size());
      body_at += body.size();
      bits[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    for (const auto& [bit, body] : features) out.bytes(body);
    const std::uint64_t head[] = {format::abi::kMagic,
                                  104,
                                  format::kCompatibleAttrSize + 16,
                                  attrs_at,
                                  attrs_.size() * (format::kCompatibleAttrSize + 16),
                                  data_at,
                                  data_.size(),
                                  0,
                                  0,
                                  bits[0],
                                  bits[1],
                                  bits[2],
                                  bits[3]};
    for (std::size_t i = 0; i < std::size(head); ++i) out.patch(8 * i, head[i]);
    return std::move(out).take_bytes();
  }

  // The same as a pipe: attributes and features as records.
  std::vector<std::byte> pipe() const {
    format::ByteWriter out;
    out.u64(format::abi::kMagic).u64(16);
    for (const Attr& attr : attrs_) {
      const std::size_t size = 8 + format::kCompatibleAttrSize + attr.ids.size() * 8;
      out.u32(format::abi::kRecordHeaderAttr).u16(0).u16(static_cast<std::uint16_t>(size));
      format::write_event_attr(out, attr.attr, format::kCompatibleAttrSize);
      for (const std::uint64_t id : attr.ids) out.u64(id);
    }
    for (const auto& [bit, body] : features_) {
      out.u32(format::abi::kRecordHeaderFeature).u16(0).u16(static_cast<std::uint16_t>(16 + body.size()));
      out.u64(bit).bytes(body);
    }
    for (const Attr& attr : attrs_) {
      if (attr.name.empty() || attr.ids.empty()) continue;
      const std::size_t start = out.size();
      out.u32(format::abi::kRecordEventUpdate).u16(0).u16(0).u64(2).u64(attr.ids[0]);
      out.padded_text(attr.name, 8);
      out.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(out.size() - start));
    }
    out.bytes(data_.view());
    return std::move(out).take_bytes();
  }

 private:
  struct Attr {
    format::EventAttr attr;
    std::string name;
    std::vector<std::uint64_t> ids;
  };
  std::size_t trailer() const { return attrs_.empty() ? 0 : format::sample_id_size(attrs_[0].attr); }
  std::vector<std::byte> event_desc() const {
    format::ByteWriter body;
    body.u32(static_cast<std::uint32_t>(attrs_.size())).u32(format::kCompatibleAttrSize);
    for (const Attr& attr : attrs_) {
      format::write_event_attr(body, attr.attr, format::kCompatibleAttrSize);
      body.u32(static_cast<std::uint32_t>(attr.ids.size())).header_string(attr.name);
      for (const std::uint64_t id : attr.ids) body.u64(id);
    }
    return std::move(body).take_bytes();
  }

  std::vector<Attr> attrs_;
  std::vector<std::pair<std::uint32_t, std::vector<std::byte>>> features_;
  format::ByteWriter data_;
};

}  // namespace tacho::test
