#include "bpf/object/btf_schema.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>
#include <linux/btf.h>

#include <memory>

namespace tacho::bpf {
namespace {

using format::FieldKind;
using format::PayloadField;

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
};

// BTF as a compiler makes it of a program, type by type.
class Types {
 public:
  Types() : btf_(btf__new_empty()) {
    u8 = btf__add_int(btf_.get(), "unsigned char", 1, 0);
    u32 = btf__add_int(btf_.get(), "unsigned int", 4, 0);
    u64 = btf__add_typedef(btf_.get(), "__u64", btf__add_int(btf_.get(), "long long unsigned int", 8, 0));
    s64 = btf__add_int(btf_.get(), "long long int", 8, BTF_INT_SIGNED);
    character = btf__add_int(btf_.get(), "char", 1, BTF_INT_SIGNED);
    boolean = btf__add_int(btf_.get(), "_Bool", 1, BTF_INT_BOOL);
  }
  btf* operator*() const { return btf_.get(); }
  int structure(const char* name, unsigned size) { return btf__add_struct(**this, name, size); }
  void member(const char* name, int type, unsigned bit_offset, unsigned bits = 0) {
    ASSERT_EQ(btf__add_field(**this, name, type, bit_offset, bits), 0);
  }
  int array(int of, unsigned count) { return btf__add_array(**this, static_cast<int>(u32), of, count); }
  void tag(int type, int member_index, const char* text) {
    ASSERT_GT(btf__add_decl_tag(**this, text, type, member_index), 0);
  }
  // What EVENT(name, type) leaves behind.
  void event(const char* name, int type) {
    const int pointer = btf__add_ptr(**this, btf__add_const(**this, type));
    ASSERT_GT(
        btf__add_var(**this, ("__event_" + std::string(name)).c_str(), BTF_VAR_GLOBAL_ALLOCATED, pointer), 0);
  }
  std::vector<std::byte> bytes() const {
    std::uint32_t size = 0;
    const auto* data = static_cast<const std::byte*>(btf__raw_data(**this, &size));
    return {data, data + size};
  }
  Declarations read() const {
    auto declared = read_declarations(bytes());
    EXPECT_TRUE(declared) << declared.error().what;
    return declared ? *declared : Declarations{};
  }

  int u8, u32, u64, s64, character, boolean;

 private:
  std::unique_ptr<btf, FreeBtf> btf_;
};

// What SUMMARY(name, map) leaves behind: a pointer to the map's own type.
TEST(BtfSchema, ASummaryHasKeyAndValueOfItsMap) {
  Types types;
  const int key = types.structure("read_key", 8);
  types.member("pid", types.u32, 0);
  types.member("slot", types.u32, 32);
  types.tag(key, 1, "role:log2");
  types.tag(key, 1, "unit:bytes");
  const int to_key = btf__add_ptr(*types, key), to_value = btf__add_ptr(*types, types.u64);
  const int map = types.structure(nullptr, 16);
  types.member("key", to_key, 0);
  types.member("value", to_value, 64);
  const int pointer = btf__add_ptr(*types, btf__add_const(*types, map));
  const int variable = btf__add_var(*types, "__summary_reads", BTF_VAR_GLOBAL_ALLOCATED, pointer);
  types.tag(variable, -1, "summary:sizes");
  const auto declared = types.read();
  ASSERT_EQ(declared.summaries.size(), 1u);
  const SummaryTypes& summary = declared.summaries.front();
  EXPECT_EQ(summary.event, "reads");
  EXPECT_EQ(summary.map, "sizes");
  ASSERT_TRUE(summary.key && summary.value);
  ASSERT_EQ(summary.key->fields.size(), 2u);
  EXPECT_EQ(summary.key->fields[1].role, "log2");
  EXPECT_EQ(summary.key->fields[1].unit, "bytes");
  ASSERT_EQ(summary.value->fields.size(), 1u);
  EXPECT_EQ(summary.value->fields[0].name, "(value)");
  EXPECT_EQ(summary.value->size, 8u);
  EXPECT_TRUE(declared.events.empty());
}

TEST(BtfSchema, NamesOfEnumeratorsEndBeforeThreeUnderscores) {
  Types types;
  const int object = btf__add_enum(*types, "object", 4);
  ASSERT_EQ(btf__add_enum_value(*types, "futex___object", 1), 0);
  ASSERT_EQ(btf__add_enum_value(*types, "other_fd", 2), 0);
  const int payload = types.structure("wait", 4);
  types.member("object", object, 0);
  types.event("wait", payload);
  const Declarations declared = types.read();
  ASSERT_EQ(declared.events.size(), 1u);
  const std::vector<std::pair<std::int64_t, std::string>> expected{{1, "futex"}, {2, "other_fd"}};
  EXPECT_EQ(declared.events.front().fields.front().enumerators, expected);
}

TEST(BtfSchema, DescribesEachKindOfMember) {
  Types types;
  const int text = types.array(types.character, 16);
  const int numbers = types.array(types.u32, 2);
  const int kind = btf__add_enum(*types, "op", 4);
  ASSERT_EQ(btf__add_enum_value(*types, "READ", 0), 0);
  ASSERT_EQ(btf__add_enum_value(*types, "WRITE", 5), 0);
  const int real = btf__add_float(*types, "double", 8);
  const int pointer = btf__add_ptr(*types, 0);
  const int payload = types.structure("sample", 64);
  types.member("latency_ns", types.u64, 0);
  types.member("ret", types.s64, 64);
  types.member("comm", text, 128);
  types.member("pair", numbers, 256);
  types.member("op", kind, 320);
  types.member("ok", types.boolean, 352);
  types.member("load", real, 384);
  types.member("pointer", pointer, 448);
  types.event("sample", payload);

  const Declarations declared = types.read();
  ASSERT_EQ(declared.events.size(), 1u);
  const auto& schema = declared.events[0];
  EXPECT_EQ(schema.event, "sample");
  EXPECT_EQ(schema.type_name, "sample");
  EXPECT_EQ(schema.size, 64u);
  const std::vector<PayloadField> expected{
      {"latency_ns", FieldKind::Unsigned, false, 0, 64, 1, false, "ns", "value", "", {}},
      {"ret", FieldKind::Signed, false, 64, 64, 1, false, "", "", "", {}},
      {"comm", FieldKind::Text, false, 128, 8, 16, false, "", "", "", {}},
      {"pair", FieldKind::Unsigned, false, 256, 32, 2, true, "", "", "", {}},
      {"op", FieldKind::Enum, false, 320, 32, 1, false, "", "", "", {{0, "READ"}, {5, "WRITE"}}},
      {"ok", FieldKind::Bool, false, 352, 8, 1, false, "", "", "", {}},
      {"load", FieldKind::Float, false, 384, 64, 1, false, "", "", "", {}},
      {"pointer", FieldKind::Unsigned, false, 448, 64, 1, false, "", "", "hex", {}},
  };
  EXPECT_EQ(schema.fields, expected);
}

TEST(BtfSchema, NestedStructsUnionsAndBitfieldsAreFlattened) {
  Types types;
  const int inner = types.structure("flags", 4);
  types.member("low", types.u32, 0, 3);
  types.member("high", types.u32, 3, 5);
  const int eight = types.array(types.u8, 8);
  const int either = btf__add_union(*types, nullptr, 8);
  types.member("as_number", types.u64, 0);
  types.member("as_bytes", eight, 0);
  const int row = types.structure("row", 4);
  types.member("x", types.u32, 0);
  const int rows = types.array(row, 2);
  const int payload = types.structure("nested", 24);
  types.member("flags", inner, 0);
  types.member(nullptr, either, 64);
  types.member("rows", rows, 128);
  types.event("nested", payload);

  const Declarations declared = types.read();
  ASSERT_EQ(declared.events.size(), 1u);
  std::string seen;
  for (const PayloadField& field : declared.events[0].fields)
    seen += field.name + "@" + std::to_string(field.bit_offset) + ":" + std::to_string(field.bit_size) + "x" +
            std::to_string(field.count) + " ";
  EXPECT_EQ(seen,
            "flags.low@0:3x1 flags.high@3:5x1 as_number@64:64x1 as_bytes@64:8x8 rows[0].x@128:32x1 "
            "rows[1].x@160:32x1 ");
}

TEST(BtfSchema, TagsWinOverNames) {
  Types types;
  const int payload = types.structure("tagged", 24);
  types.member("wait_ns", types.u64, 0);
  types.member("bytes", types.u64, 64);
  types.member("where", types.u64, 128);
  types.tag(payload, 0, "unit:ticks");
  types.tag(payload, 1, "role:weight");
  types.tag(payload, 2, "format:kaddr");
  types.tag(payload, 2, "role:value");
  types.event("tagged", payload);
  const auto fields = types.read().events.at(0).fields;
  EXPECT_EQ(fields[0].unit, "ticks");
  EXPECT_EQ(fields[1].unit, "bytes");
  EXPECT_EQ(fields[1].role, "weight");
  EXPECT_EQ(fields[2].format, "kaddr");
  EXPECT_EQ(fields[2].role, "value");
}

TEST(BtfSchema, TheValueIsTheOnlyMemberWithAUnitOfTimeOrSize) {
  Types types;
  const int one = types.structure("one", 16);
  types.member("read_bytes", types.u64, 0);
  types.member("fd", types.u32, 64);
  types.event("one", one);
  const int two = types.structure("two", 16);
  types.member("latency_us", types.u64, 0);
  types.member("bytes", types.u64, 64);
  types.event("two", two);
  const Declarations declared = types.read();
  EXPECT_EQ(declared.event("one")->fields[0].role, "value");
  EXPECT_EQ(declared.event("one")->fields[0].unit, "bytes");
  for (const PayloadField& field : declared.event("two")->fields) EXPECT_EQ(field.role, "") << field.name;
}

TEST(BtfSchema, AnArrayWithoutLengthMustBeLast) {
  Types types;
  const int open_ended = types.array(types.character, 0);
  const int payload = types.structure("path", 4);
  types.member("marker", open_ended, 0);
  types.member("fd", types.u32, 0);
  types.member("name", open_ended, 32);
  types.event("path", payload);
  const auto fields = types.read().events.at(0).fields;
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[1].name, "name");
  EXPECT_EQ(fields[1].kind, FieldKind::Text);
  EXPECT_EQ(fields[1].count, 0u);
}

TEST(BtfSchema, AnUnnamedStructIsKnownByItsTypedef) {
  Types types;
  const int payload = types.structure(nullptr, 8);
  types.member("bytes", types.u64, 0);
  types.event("x", btf__add_typedef(*types, "event_t", payload));
  EXPECT_EQ(types.read().events.at(0).type_name, "event_t");
}

TEST(BtfSchema, ATypeThatCannotBeDescribedIsAProblemAndNotAGuess) {
  Types types;
  types.event("forward", btf__add_fwd(*types, "unknown", BTF_FWD_STRUCT));
  const int outside = types.structure("outside", 4);
  types.member("far", types.u64, 0);
  types.event("outside", outside);
  const Declarations declared = types.read();
  EXPECT_TRUE(declared.events.empty());
  ASSERT_EQ(declared.problems.size(), 2u);
  EXPECT_NE(declared.problems[0].find("event forward: its type is not defined"), std::string::npos);
  EXPECT_NE(declared.problems[1].find("'far' is outside"), std::string::npos);
}

TEST(BtfSchema, WordsThatNothingKnowsAreNamedWithTheirPlace) {
  Types types;
  const int event = types.structure("reading", 32);
  types.member("took", types.u64, 0);
  types.member("flags", types.u64, 64);
  types.member("stack", types.u64, 128);
  types.member("calls", types.u64, 192);
  types.tag(event, 0, "role:valu");
  types.tag(event, 1, "format:hx");
  types.tag(event, 2, "role:stack:stacks");
  types.tag(event, 3, "role:sum unless cuont");
  types.event("reading", event);
  const int map = btf__add_var(*types, "channel", BTF_VAR_GLOBAL_ALLOCATED, types.u32);
  types.tag(map, -1, "event:raeding");
  const Declarations declared = types.read();
  std::vector<std::pair<std::string, std::string>> found;
  for (const UnknownWord& each : declared.unknown_words) found.emplace_back(each.declaration, each.word);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, std::string>>{
                       {"member 'took' of 'reading': ROLE(\"valu\")", "valu"},
                       {"member 'flags' of 'reading': FORMAT(\"hx\")", "hx"},
                       {"member 'calls' of 'reading': ROLE(\"sum unless cuont\")", "cuont"},
                       {"map 'channel': EVENT_CHANNEL(raeding)", "raeding"}}));
  EXPECT_EQ(declared.unknown_words.back().known, std::vector<std::string>{"reading"});
}

TEST(BtfSchema, WhatTheHeadersOfferIsKnown) {
  Types types;
  const int event = types.structure("all", 8);
  types.member("one", types.u64, 0);
  for (const char* tag :
       {"role:value",         "role:key",   "role:weight",  "role:queued",     "role:wakes",
        "role:waker",         "role:stack", "role:log2",    "role:linear:10",  "role:stack:map",
        "role:count",         "role:sum",   "role:live",    "role:live:count", "role:max",
        "format:hex",         "format:oct", "format:kaddr", "format:uaddr",    "unit:requests",
        "whatever:others say"})
    types.tag(event, 0, tag);
  EXPECT_TRUE(types.read().unknown_words.empty());
}

TEST(BtfSchema, TypesThatHoldEachOtherEnd) {
  Types types;
  const int next = static_cast<int>(btf__type_cnt(*types));
  const int many = types.array(next + 1, 60000);
  const int self = types.structure("self", 1);
  ASSERT_EQ(self, next + 1);
  types.member("again", many, 0);
  types.event("self", self);
  const Declarations declared = types.read();
  EXPECT_TRUE(declared.events.empty());
  EXPECT_EQ(declared.problems.size(), 1u);
}

TEST(BtfSchema, ReadsChannelsAndAlternatives) {
  Types types;
  const int map = btf__add_var(*types, "channel", BTF_VAR_GLOBAL_ALLOCATED, types.u32);
  types.tag(map, -1, "event:bigread");
  const int prototype = btf__add_func_proto(*types, types.u32);
  const int first = btf__add_func(*types, "first", BTF_FUNC_GLOBAL, prototype);
  const int second = btf__add_func(*types, "second", BTF_FUNC_GLOBAL, prototype);
  types.tag(second, -1, "alternative:read/pair");
  types.tag(first, -1, "alternative:read");
  const Declarations declared = types.read();
  ASSERT_EQ(declared.channels.size(), 1u);
  EXPECT_EQ(declared.channels[0], (std::pair<std::string, std::string>("channel", "bigread")));
  ASSERT_EQ(declared.alternatives.size(), 2u);
  EXPECT_EQ(declared.alternatives[0].program, "first");
  EXPECT_EQ(declared.alternatives[0].set, "first");
  EXPECT_EQ(declared.alternatives[1].group, "read");
  EXPECT_EQ(declared.alternatives[1].set, "pair");
}

TEST(BtfSchema, DamagedBytesAreRefusedOrReadNoFurther) {
  Types types;
  const int text = types.array(types.character, 8);
  const int payload = types.structure("x", 16);
  types.member("bytes", types.u64, 0);
  types.member("name", text, 64);
  types.event("x", payload);
  const auto whole = types.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_declarations(format::Bytes(whole).first(size))) << size;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const unsigned value : {0U, 0x7fU, 0xffU}) {
      auto damaged = whole;
      damaged[at] = static_cast<std::byte>(value);
      const auto declared = read_declarations(damaged);
      if (!declared) continue;
      for (const auto& schema : declared->events)
        for (const PayloadField& field : schema.fields) {
          EXPECT_LE(field.bit_offset + std::uint64_t{field.bit_size} * field.count, schema.size * 8ULL);
          EXPECT_LE(field.bit_size, 64u);
        }
    }
}

}  // namespace
}  // namespace tacho::bpf
