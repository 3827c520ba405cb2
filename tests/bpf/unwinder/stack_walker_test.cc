#include "bpf/unwinder/stack_walker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "bpf/object/object.h"
#include "bpf/support/shipped_files.h"

namespace tacho::bpf {

namespace {

format::Bytes recorder(std::string_view name) {
  const auto all = shipped_recorders();
  const auto found = std::ranges::find(all, name, &ShippedRecorder::name);
  return found == all.end() ? format::Bytes{} : found->object;
}

bool has_map(const Object& object, const std::string& name) { return object.has_map(name); }

TEST(WalkLink, EventsOfAnArrayHaveTheWalkInFrontAndRingsAskForStacks) {
  if (recorder("open").empty()) GTEST_SKIP() << "built without clang";
  EXPECT_TRUE(walk_use_of(recorder("open")).in_front_of_events);
  EXPECT_FALSE(walk_use_of(recorder("open")).in_payloads);
  EXPECT_TRUE(walk_use_of(recorder("offcpu")).in_payloads);
  EXPECT_FALSE(walk_use_of(recorder("offcpu")).in_front_of_events) << "it fills a ring buffer alone";
  EXPECT_TRUE(walk_use_of(recorder("offcputime")).in_payloads);
  EXPECT_FALSE(walk_use_of(stack_walk_object()).in_front_of_events) << "its own output has none in front";
  EXPECT_FALSE(walk_use_of({}).in_front_of_events);
}

TEST(WalkLink, ALinkedObjectHasBothAndKeepsItsPrograms) {
  if (recorder("open").empty()) GTEST_SKIP() << "built without clang";
  LinkedWalk linked;
  const auto done = link_walker(linked, recorder("open"), {{"tacho_stacks", 7}});
  ASSERT_TRUE(done) << done.error().what;
  ASSERT_EQ(linked.maps.size(), 1u);
  const auto before = Object::open(recorder("open"), "before", {});
  const auto after = Object::open(linked.elf, "after", {});
  ASSERT_TRUE(before && after);
  std::vector<std::string> names, kept;
  for (const Program& program : before->programs()) names.push_back(program.name + program.section);
  for (const Program& program : after->programs()) kept.push_back(program.name + program.section);
  EXPECT_EQ(names, kept);
  EXPECT_FALSE(has_map(*before, "tacho_stacks"));
  for (const char* map : {"tacho_stacks", "tacho_modules", "tacho_followed", ".rodata.tacho"})
    EXPECT_TRUE(has_map(*after, map)) << map;
  ASSERT_TRUE(link_walker(linked, recorder("open"), {}));
  EXPECT_TRUE(linked.elf.empty()) << "nobody wants it";
}

TEST(WalkLink, WhatCannotBeLinkedIsRefused) {
  if (linked_walk_object().empty()) GTEST_SKIP() << "built without clang";
  const std::vector<std::byte> noise(4096, std::byte{7});
  LinkedWalk linked;
  EXPECT_FALSE(link_walker(linked, noise, {{"tacho_stacks", 7}}));
  EXPECT_TRUE(linked.elf.empty());
}

}  // namespace

}  // namespace tacho::bpf
