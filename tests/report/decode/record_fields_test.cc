#include "report/decode/record_fields.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <array>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/record.h"
#include "report/output/field_sinks.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

using namespace format;

// A record of `type` with this body, and its fields as text.
rapidjson::Document fields_of(std::uint32_t type, const ByteWriter& body, const EventAttr& attr = {},
                              std::uint16_t misc = 0) {
  ByteWriter record;
  record.u32(type).u16(misc).u16(static_cast<std::uint16_t>(8 + body.size())).bytes(body.view());
  RecordView view;
  view.type = type;
  view.misc = misc;
  view.bytes = record.view();
  TextBuffer out;
  JsonFields to(out);
  if (type == abi::kRecordSample) {
    const auto sample = parse_sample(view, attr);
    EXPECT_TRUE(sample.has_value());
    if (sample) describe_sample(to, *sample, attr);
  } else {
    const auto parsed = parse_record(view, attr);
    EXPECT_TRUE(parsed) << record_name(type);
    if (parsed) describe_record(to, *parsed, view);
    describe_sample_id(to, parse_sample_id(view, attr), attr);
  }
  to.finish();
  rapidjson::Document json;
  const std::string text(out.view());
  json.Parse(text.data(), text.size());
  EXPECT_FALSE(json.HasParseError()) << text;
  return json;
}

TEST(RecordFields, EveryKnownTypeIsTakenApart) {
  const std::set<std::string_view> as_bytes{"COMPRESSED", "COMPRESSED2"};
  ByteWriter zeros;
  zeros.zeros(1024);
  std::size_t known = 0;
  for (std::uint32_t type = 1; type < 256; ++type) {
    const std::string_view name = record_name(type);
    if (name.empty() || type == abi::kRecordSample) continue;
    ++known;
    if (type == abi::kRecordHeaderAttr) continue;  // below: zeros are no attribute
    const bool is_empty = name == "FINISHED_ROUND" || name == "FINISHED_INIT";
    const auto json = fields_of(type, is_empty ? ByteWriter() : zeros);
    if (as_bytes.contains(name)) continue;
    EXPECT_FALSE(json.HasMember("body")) << name;
    EXPECT_EQ(json.ObjectEmpty(), is_empty || name == "SWITCH" ? is_empty : false) << name;
  }
  EXPECT_GT(known, 40u);
}

TEST(RecordFields, ASampleOfEveryFieldIsTold) {
  EventAttr attr;
  attr.sample_type = abi::kKnownSampleTypes & ~(abi::kSampleId | abi::kSampleWeight);
  attr.read_format = abi::kKnownReadFormats;
  attr.branch_sample_type = abi::kBranchHwIndex;
  attr.sample_regs_user = 3;
  attr.sample_regs_intr = 4;
  ByteWriter body;
  body.u64(11).u64(0x1000).u32(2).u32(3).u64(44).u64(0x55).u64(66).u32(7).u32(0).u64(8);  // id to period
  body.u64(1).u64(100).u64(90).u64(5).u64(11).u64(6);                                     // read
  body.u64(2).u64(abi::kContextUser).u64(0x1000);                                         // callchain
  body.u32(4).u32(0xddccbbaa);                                                            // raw
  body.u64(1).u64(9).u64(1).u64(2).u64(3);                                                // branches
  body.u64(2).u64(0x10).u64(0x11);                                                        // user registers
  body.u64(8).u64(0x2222).u64(8);                                                         // user stack
  body.u32(12).u16(13).u16(14).u64(0x15).u64(0x16);                  // weight, data source, transaction
  body.u64(2).u64(0x17);                                             // interrupt registers
  body.u64(0x18).u64(19).u64(4096).u64(2097152).u64(8).u64(0x3333);  // phys_addr to aux
  const auto json = fields_of(abi::kRecordSample, body, attr);
  EXPECT_EQ(json["id"].GetUint64(), 11u);
  EXPECT_EQ(json["cpu"].GetInt64(), 7);
  EXPECT_EQ(json["read"]["values"][0]["lost"].GetUint64(), 6u);
  EXPECT_EQ(json["read"]["time_running"].GetUint64(), 90u);
  EXPECT_STREQ(json["callchain"][1].GetString(), "0x1000");
  EXPECT_STREQ(json["raw"].GetString(), "aabbccdd");
  EXPECT_EQ(json["branch_hw_index"].GetUint64(), 9u);
  EXPECT_STREQ(json["branches"][0]["to"].GetString(), "0x2");
  EXPECT_STREQ(json["user_registers"]["values"][1].GetString(), "0x11");
  EXPECT_STREQ(json["user_stack"].GetString(), "2222000000000000");
  EXPECT_EQ(json["weight"].GetUint64(), 12u);
  EXPECT_EQ(json["weight3"].GetUint64(), 14u);
  EXPECT_STREQ(json["data_source"].GetString(), "0x15");
  EXPECT_STREQ(json["transaction"].GetString(), "0x16");
  EXPECT_STREQ(json["interrupt_registers"]["values"][0].GetString(), "0x17");
  EXPECT_STREQ(json["phys_addr"].GetString(), "0x18");
  EXPECT_EQ(json["cgroup"].GetUint64(), 19u);
  EXPECT_EQ(json["code_page_size"].GetUint64(), 2097152u);
  EXPECT_STREQ(json["aux"].GetString(), "3333000000000000");
}

TEST(RecordFields, WhatASampleDoesNotHaveIsNotTold) {
  EventAttr attr;
  attr.sample_type = abi::kSampleIp;
  ByteWriter body;
  body.u64(0x1000);
  EXPECT_EQ(fields_of(abi::kRecordSample, body, attr).MemberCount(), 1u);
}

TEST(RecordFields, ACommTellsItsTrailer) {
  const EventAttr attr = test::software_event(abi::kCpuClock);
  ByteWriter body;
  body.u32(1).u32(2).padded_text("dd", 8);
  body.u32(1).u32(2).u64(500).u32(3).u32(0).u64(7);
  const auto json = fields_of(abi::kRecordComm, body, attr, abi::kMiscCommExec);
  EXPECT_STREQ(json["comm"].GetString(), "dd");
  EXPECT_TRUE(json["exec"].GetBool());
  EXPECT_EQ(json["sample_id"]["time"].GetUint64(), 500u);
  EXPECT_EQ(json["sample_id"]["id"].GetUint64(), 7u);
  EXPECT_EQ(json["sample_id"]["cpu"].GetInt64(), 3);
}

TEST(RecordFields, AnAttributesZerosAreLeftOut) {
  ByteWriter body;
  write_event_attr(body, test::software_event(abi::kBpfOutput), kCompatibleAttrSize);
  body.u64(71).u64(72);
  const auto json = fields_of(abi::kRecordHeaderAttr, body);
  EXPECT_STREQ(json["config"].GetString(), "0xa");
  EXPECT_EQ(json["ids"][1].GetUint64(), 72u);
  EXPECT_FALSE(json.HasMember("config2"));
}

TEST(RecordFields, CpuMapsOfEachKindAreTold) {
  ByteWriter list, range;
  list.u16(0).u16(2).u16(5).u16(0xffff);
  range.u16(2).u8(0).u8(0).u16(1).u16(3);
  EXPECT_EQ(fields_of(abi::kRecordCpuMap, list)["cpus"][1].GetInt64(), -1);
  EXPECT_EQ(fields_of(abi::kRecordCpuMap, range)["last"].GetInt64(), 3);
}

TEST(RecordFields, AMaskOfCpusIsItsWordsWithoutThePadding) {
  ByteWriter narrow, wide;
  narrow.u16(1).u16(2).u16(4).u32(0x3).u32(0x80000000).u16(0xeeee);
  wide.u16(1).u16(1).u16(8).u32(0xdddddddd).u64(0x8000000000000001).zeros(6);
  const auto of_narrow = fields_of(abi::kRecordCpuMap, narrow);
  ASSERT_EQ(of_narrow["mask"].Size(), 2u);
  EXPECT_STREQ(of_narrow["mask"][1].GetString(), "0x80000000");
  const auto of_wide = fields_of(abi::kRecordCpuMap, wide);
  ASSERT_EQ(of_wide["mask"].Size(), 1u);
  EXPECT_STREQ(of_wide["mask"][0].GetString(), "0x8000000000000001");
}

TEST(RecordFields, AnUpdateOfAnEventIsToldByItsKind) {
  const auto update = [](std::uint64_t kind, const ByteWriter& data) {
    ByteWriter body;
    body.u64(kind).u64(7).bytes(data.view());
    return fields_of(abi::kRecordEventUpdate, body);
  };
  ByteWriter unit, scale, no_number, cpus;
  unit.padded_text("msec", 8);
  scale.u64(std::bit_cast<std::uint64_t>(1e-06));
  no_number.u64(0x7ff8000000000000);
  cpus.u16(0).u16(2).u16(1).u16(3);
  EXPECT_STREQ(update(0, unit)["value"].GetString(), "msec");
  EXPECT_EQ(update(1, scale)["value"].GetDouble(), 1e-06);
  EXPECT_STREQ(update(1, no_number)["value"].GetString(), "0x7ff8000000000000");
  EXPECT_EQ(update(3, cpus)["cpus"][1].GetInt64(), 3);
  EXPECT_STREQ(update(9, cpus)["value"].GetString(), "0000020001000300");
}

TEST(RecordFields, SchedulerStatisticsTellWhenAndWhere) {
  ByteWriter body;
  body.u64(500).u32(1).u16(17).u16(0).u32(0x99);
  const auto json = fields_of(abi::kRecordSchedstatDomain, body);
  EXPECT_EQ(json["schedstat_time"].GetUint64(), 500u);
  EXPECT_EQ(json["cpu"].GetUint64(), 1u);
  EXPECT_EQ(json["schedstat_version"].GetUint64(), 17u);
  EXPECT_STREQ(json["counters"].GetString(), "000099000000");
}

TEST(RecordFields, CountsThatThePayloadDoesNotHoldAreNotBelieved) {
  for (const std::uint32_t type : {abi::kRecordStatConfig, abi::kRecordBpfMetadata}) {
    ByteWriter body;
    if (type == abi::kRecordBpfMetadata) body.zeros(512);
    body.u64(~std::uint64_t{0}).zeros(16);
    const auto json = fields_of(type, body);
    EXPECT_EQ(json.MemberBegin()->value.IsObject(), false);
  }
}

}  // namespace
}  // namespace tacho::report
