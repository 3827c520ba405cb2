#include "bpf/object/kernel_btf.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bpf/object/channel.h"

namespace tacho::bpf {

namespace {

// A kernel in little: struct io with numbers, bits, an enum, a struct and a pointer in it, and functions that
// take it.
class KernelTypes {
 public:
  KernelTypes() : types_(btf__new_empty(), btf__free) {
    btf* const types = types_.get();
    const int word = btf__add_int(types, "long unsigned int", 8, 0);
    const int number = btf__add_int(types, "int", 4, BTF_INT_SIGNED);
    const int flag = btf__add_int(types, "_Bool", 1, BTF_INT_BOOL);
    const int sector = btf__add_typedef(types, "sector_t", btf__add_const(types, word));
    const int state = btf__add_enum(types, "io_state", 4);
    btf__add_enum_value(types, "IDLE", 0);
    btf__add_enum_value(types, "BUSY", 1);
    const int flags = btf__add_enum(types, "io_flags", 4);
    btf__add_enum_value(types, "LAST", 0x80000000);
    const int inner = btf__add_struct(types, "iter", 16);
    btf__add_field(types, "at", sector, 64, 0);
    const int disk = btf__add_struct(types, "disk", 16);
    btf__add_field(types, "dev", number, 64, 0);
    const int nameless = btf__add_struct(types, nullptr, 8);
    btf__add_field(types, "hidden", word, 0, 0);
    const int to_disk = btf__add_ptr(types, disk);
    io_ = btf__add_struct(types, "io", 64);  // the last type there is, as long as it gets members
    btf__add_field(types, "count", number, 32, 0);
    btf__add_field(types, "state", state, 64, 0);
    btf__add_field(types, "flags", flags, 96, 0);
    btf__add_field(types, "iter", inner, 128, 0);
    btf__add_field(types, "low", number, 256 + 3, 5);
    btf__add_field(types, "is_done", flag, 264, 0);
    btf__add_field(types, "disk", to_disk, 320, 0);
    btf__add_field(types, "", nameless, 384, 0);
    const int pointer = btf__add_ptr(types, btf__add_const(types, io_));
    const int pair = btf__add_struct(types, "pair", 16);
    btf__add_field(types, "a", word, 0, 0);
    btf__add_field(types, "b", word, 64, 0);
    function("submit", {pointer});
    function("second", {number, pointer});
    function("behind_a_pair", {pair, pointer});
    function("by_value", {io_});
    function("far", {word, word, word, word, word, word, pointer});
    function("of_two", {pointer});
    function("of_two", {word, pointer});
    function("nobody", {word});
    const int handle = btf__add_typedef(types, "io_t", io_);
    function("by_typedef", {btf__add_ptr(types, handle)});
    function("loop", {loop()});
  }
  ObjectTypes read() const {
    std::uint32_t size = 0;
    const void* const data = btf__raw_data(types_.get(), &size);
    auto found = ObjectTypes::of({static_cast<const std::byte*>(data), size});
    EXPECT_TRUE(found);
    return std::move(*found);
  }

 private:
  // A pointer to a typedef of a const of itself, which no compiler makes.
  int loop() {
    const int next = static_cast<int>(btf__type_cnt(types_.get()));
    btf__add_typedef(types_.get(), "endless", next + 1);
    return btf__add_const(types_.get(), next);
  }
  void function(const char* name, const std::vector<int>& arguments) {
    const int prototype = btf__add_func_proto(types_.get(), 0);
    for (const int type : arguments) btf__add_func_param(types_.get(), "it", type);
    btf__add_func(types_.get(), name, BTF_FUNC_STATIC, prototype);
  }

  std::unique_ptr<btf, void (*)(btf*)> types_;
  int io_ = 0;
};

std::string taking(const std::string& type) {
  const auto found = KernelTypes().read().functions_taking(type);
  if (!found) return found.error().what;
  std::string out;
  for (const TakingFunction& each : *found) out += each.name + ":" + std::to_string(each.argument) + " ";
  return out;
}

TEST(ObjectTypes, FunctionsAreThoseWithAPointerInARegister) {
  const std::string all = "behind_a_pair:3 by_typedef:1 second:2 submit:1 ";
  EXPECT_EQ(taking("struct io"), all);
  EXPECT_EQ(taking("io"), all);
  EXPECT_EQ(taking("struct io *"), all);
  EXPECT_EQ(taking("io_t"), "by_typedef:1 ");
  EXPECT_EQ(taking("union io"), "the kernel's BTF has no type 'union io'");
  EXPECT_EQ(taking("struct oi"), "the kernel's BTF has no type 'struct oi'");
  EXPECT_EQ(taking("struct disk"), "no function of the kernel takes a pointer to struct disk");
  EXPECT_EQ(taking("endless"), "the kernel's BTF has no type 'endless'");
  EXPECT_NE(taking(""), all);
}

// What the program makes of the bytes of an object with that member.
std::int64_t value_of(const ObjectMember& member, const std::array<std::uint8_t, 64>& object) {
  std::uint64_t value = 0;
  std::memcpy(&value, object.data() + member.location.at[member.location.pointers], member.location.bytes);
  value <<= member.location.left;
  return member.location.is_signed != 0 ? static_cast<std::int64_t>(value) >> member.location.right
                                        : static_cast<std::int64_t>(value >> member.location.right);
}

TEST(ObjectTypes, MembersAreFoundByTheirPaths) {
  const ObjectTypes types = KernelTypes().read();
  std::array<std::uint8_t, 64> object{};
  object[4] = 0xfe, object[5] = object[6] = object[7] = 0xff;  // count -2
  object[8] = 1;                                               // state BUSY
  object[15] = 0x80;                                           // flags LAST
  object[24] = 0x68, object[25] = 0x02;                        // iter.at 616
  object[32] = 0xff;                                           // all of low, and bits that are not its
  object[33] = 1;
  object[48] = 9;
  const auto member = [&](std::string_view path) {
    auto found = types.member("struct io", path);
    EXPECT_TRUE(found) << path << ": " << found.error().what;
    return std::move(*found);
  };
  EXPECT_EQ(value_of(member("count"), object), -2);
  EXPECT_EQ(member("count").field.kind, format::FieldKind::Signed);
  EXPECT_EQ(value_of(member("state"), object), 1);
  EXPECT_EQ(member("state").field.enumerators.size(), 2u);
  EXPECT_EQ(value_of(member("flags"), object), member("flags").field.enumerators.front().first);
  EXPECT_EQ(value_of(member("iter.at"), object), 616);
  EXPECT_EQ(member("iter.at").field.name, "iter.at");
  EXPECT_EQ(value_of(member("low"), object), -1) << "five bits with a sign";
  EXPECT_EQ(member("low").location.bytes, 1u);
  EXPECT_EQ(value_of(member("is_done"), object), 1);
  EXPECT_EQ(value_of(member("hidden"), object), 9) << "in a struct without a name";
  EXPECT_EQ(member("disk").field.format, "hex");
  for (const char* path : {"disk.dev", "disk->dev"}) {
    const ObjectMember through = member(path);
    EXPECT_EQ(through.location.pointers, 1u);
    EXPECT_EQ(through.location.at[0], 40u);
    EXPECT_EQ(through.location.at[1], 8u);
    EXPECT_EQ(through.location.bytes, 4u);
  }
}

TEST(ObjectTypes, WrongPathsSayWhatThereIs) {
  const ObjectTypes types = KernelTypes().read();
  const auto why = [&](std::string_view path) { return types.member("io", path).error().what; };
  EXPECT_EQ(why("cuont"),
            "io has no member 'cuont'; it has: count, state, flags, iter, low, is_done, disk, hidden");
  EXPECT_EQ(why("iter"), "iter is not a number of 1 to 8 bytes; its members are: at");
  EXPECT_EQ(why("iter.to"), "iter has no member 'to'; it has: at");
  EXPECT_EQ(why("count.x"), "count has no members");
  for (const char* path : {"", ".", "..", "iter.", "iter..at", "->", "iter.at.x", "disk.dev->x"})
    EXPECT_FALSE(types.member("io", path)) << path;
}

TEST(ObjectTypes, WhatIsNoBtfIsRefused) {
  const std::array<std::byte, 16> nothing{};
  EXPECT_FALSE(ObjectTypes::of(nothing));
  EXPECT_FALSE(ObjectTypes::of({}));
}

TEST(Payloads, TheirLastFieldGivesWayToOthers) {
  format::PayloadSchema schema{"follow", "follow", 104, {}};
  format::PayloadField object, shown, sector, flags;
  object.name = "object", object.bit_offset = 256, object.bit_size = 64;
  shown.name = "shown", shown.bit_offset = 320, shown.bit_size = 64, shown.count = 8;
  sector.name = "bi_iter.bi_sector", sector.bit_size = 64;
  flags.name = "bi_opf", flags.bit_size = 64;
  schema.fields = {object, shown};
  replace_tail(schema, "other", {sector});
  EXPECT_EQ(schema.fields.back().name, "shown");
  replace_tail(schema, "shown", {sector, flags});
  ASSERT_EQ(schema.fields.size(), 3u);
  EXPECT_EQ(schema.fields[1].bit_offset, 320u);
  EXPECT_EQ(schema.fields[2].bit_offset, 384u);
  EXPECT_EQ(schema.size, 56u);
  schema.fields = {object, shown};
  replace_tail(schema, "shown", {});
  EXPECT_EQ(schema.size, 40u);
  EXPECT_EQ(schema.fields.size(), 1u);
}

}  // namespace

namespace {

using Code = std::vector<bpf_insn>;

bpf_insn set(unsigned to, int value) {
  return {BPF_ALU64 | BPF_MOV | BPF_K, static_cast<__u8>(to & 15U), 0, 0, value};
}
bpf_insn add(unsigned to, int value) {
  return {BPF_ALU64 | BPF_ADD | BPF_K, static_cast<__u8>(to & 15U), 0, 0, value};
}
bpf_insn jump(int distance) { return {BPF_JMP | BPF_JA, 0, 0, static_cast<__s16>(distance), 0}; }
bpf_insn jump_if_zero(unsigned what, int distance) {
  return {BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u8>(what & 15U), 0, static_cast<__s16>(distance), 0};
}
bpf_insn call(int function) { return {BPF_JMP | BPF_CALL, 0, 0, 0, function}; }
const bpf_insn kExit{BPF_JMP | BPF_EXIT, 0, 0, 0, 0};

bool may_drop(const Code& code) { return may_drop_events(std::as_bytes(std::span(code))); }

TEST(ReturnValue, OneIsKeptAndZeroDrops) {
  EXPECT_FALSE(may_drop({set(0, 1), kExit}));
  EXPECT_TRUE(may_drop({set(0, 0), kExit}));
  EXPECT_TRUE(may_drop({set(0, 2), kExit})) << "the kernel joins results bit by bit, beginning with 1";
  EXPECT_FALSE(may_drop({set(0, -1), kExit}));
}

TEST(ReturnValue, EveryWayThroughTheProgramCounts) {
  EXPECT_TRUE(may_drop({set(0, 1), jump_if_zero(6, 1), set(0, 0), kExit}));
  EXPECT_FALSE(may_drop({set(0, 0), jump_if_zero(6, 1), set(1, 0), set(0, 1), kExit}));
  EXPECT_TRUE(may_drop({set(0, 1), jump(1), kExit, set(0, 0), jump(-3)})) << "a way back";
}

TEST(ReturnValue, WhatAFunctionReturnedIsNotKnown) {
  EXPECT_TRUE(may_drop({set(0, 1), call(14), kExit}));
  EXPECT_FALSE(may_drop({call(14), set(0, 1), kExit}));
  EXPECT_TRUE(may_drop({set(0, 1), add(0, 1), kExit}));
  EXPECT_TRUE(may_drop({call(12), set(0, 1), kExit})) << "a tail call: another program returns";
}

TEST(ReturnValue, ConstantsOfTwoInstructionsAreSteppedOver) {
  const bpf_insn wide{BPF_LD | BPF_IMM | BPF_DW, 1, 0, 0, 0};
  const bpf_insn rest{0, 0, 0, 0, 0};
  EXPECT_FALSE(may_drop({set(0, 1), wide, rest, kExit}));
  EXPECT_TRUE(may_drop({set(0, 1), {BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 1}, rest, kExit}));
}

TEST(ReturnValue, WhatIsNoProgramEndsTheWalk) {
  EXPECT_TRUE(may_drop({}));
  EXPECT_TRUE(may_drop({set(0, 1)}));
  EXPECT_TRUE(may_drop({set(0, 1), jump(-3)})) << "jumps in front of itself";
  EXPECT_FALSE(may_drop({set(0, 1), jump(-1)})) << "never ends";
  EXPECT_TRUE(may_drop({set(0, 1), jump(1000), kExit}));
}

}  // namespace

}  // namespace tacho::bpf
