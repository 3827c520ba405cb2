#include "format/container/features.h"

#include <gtest/gtest.h>

namespace tacho::format {
namespace {

// Something in every section that there is.
Features full_features() {
  Features features;
  Environment& env = features.environment;
  features.tracing.page_size = 4096;
  features.tracing.formats = {{"sched", "name: sched_switch\n"}};
  env.build_ids = {{-1, abi::kCpumodeUser, *BuildId::from_hex("0102"), "/bin/true"}};
  env.hostname = "host";
  env.os_release = "6.1";
  env.version = "tacho";
  env.arch = "x86_64";
  env.cpus_available = 2;
  env.cpus_online = 1;
  env.cpu_description = "a cpu";
  env.cpu_id = "AuthenticAMD,25";
  env.total_memory_kib = 1024;
  env.command_line = {"tacho", "record"};
  env.cpu_topology = CpuTopology{{"0-1"}, {"0", "1"}, {"0-1"}, {{0, 0, 0}, {1, 0, 0}}};
  env.numa_nodes = {{0, 100, 50, "0-1"}};
  env.has_branch_stack = true;
  env.pmu_mappings = {{1, "software"}};
  env.groups = {{"{anon}", 0, 2}};
  env.is_stat = true;
  env.caches = {{1, 64, 64, 8, "Data", "32K", "0"}};
  env.sample_time = {5, 6};
  env.memory_block_size = 4096;
  env.memory_nodes = {{0, 70, {1, 2}}};
  env.clock_resolution_ns = 1;
  env.directory_format = 1;
  env.bpf_programs = {{{std::byte{1}}, 3, {std::byte{2}, std::byte{3}}}};
  env.btf = {{7, {std::byte{9}}}};
  env.compression = CompressionInfo{1, 1, 5, 65536};
  env.cpu_pmu_caps = {{"branches", "32"}};
  env.clock_data = ClockData{1, 2, 3};
  env.hybrid_pmus = {{"cpu_core", "0-3"}};
  env.pmu_caps = {{{{"a", "b"}}, "cpu"}};
  env.elf_machine = {62, 0};
  env.cache_line_size = 64;
  env.content = {{"comm", "hashed"}, {"paths", "as recorded"}};
  env.attached_programs = {{"read", "kretprobe/vfs_read", "a.bpf.o", 5, "attached"}};
  env.bpf_maps = {
      {.id = 7, .type = 1, .key_bytes = 4, .value_bytes = 24, .most_entries = 10240, .name = "starts"}};
  env.bpf_places = {{"5", "kretprobe vfs_read"}};
  env.user_stacks = {{"every event", "unwound in the kernel (eh)"}, {"walked", "7"}};
  env.losses = {{{"sched:sched_switch", "web", 3, 900}, {"cpu-clock", "", -1, 1}}, {{5, 2'000'000'000}}, 77};
  features.schemas = {{"evt", "event", 8, {}}};
  features.attachments = {{"kallsyms", "/proc/kallsyms", 3, {std::byte{1}}}};
  EventAttr attr;
  attr.size = kCompatibleAttrSize;
  attr.config = 10;
  features.event_descriptions = {{attr, "evt", {1, 2}}};
  features.raw = {{abi::kFeatureAuxtrace, {std::byte{1}}}, {abi::kFeatureCpuDomainInfo, {std::byte{1}}}};
  return features;
}

TEST(Features, EverySectionIsWrittenAndWrittenAgainTheSame) {
  const Features features = full_features();
  Features back;
  std::size_t sections = 0;
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    ByteWriter out;
    if (!write_feature(feature, features, out)) continue;
    ++sections;
    const auto read = read_feature(feature, Cursor(out.view()), back);
    EXPECT_TRUE(read) << feature_name(feature) << ": " << (read ? "" : read.error().what);
    ByteWriter again;
    EXPECT_TRUE(write_feature(feature, back, again));
    EXPECT_TRUE(std::ranges::equal(out.view(), again.view())) << feature_name(feature);
  }
  EXPECT_EQ(sections, 34u + 8u) << "perf's 1 to 34 and tacho's eight";
  EXPECT_EQ(back.present.count(), sections);
  EXPECT_EQ(back.environment.content, features.environment.content);
  EXPECT_EQ(back.environment.attached_programs, features.environment.attached_programs);
  EXPECT_EQ(back.environment.bpf_maps, features.environment.bpf_maps);
  EXPECT_EQ(back.environment.bpf_places, features.environment.bpf_places);
  EXPECT_EQ(back.environment.user_stacks, features.environment.user_stacks);
  EXPECT_EQ(back.environment.losses, features.environment.losses);
  EXPECT_EQ(back.event_descriptions[0].name, "evt");
  EXPECT_EQ(back.event_descriptions[0].ids, (std::vector<std::uint64_t>{1, 2}));
}

TEST(Features, ABrokenSectionLeavesNothingBehind) {
  const Features features = full_features();
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    ByteWriter out;
    if (!write_feature(feature, features, out)) continue;
    for (std::size_t size = 0; size < out.size(); ++size) {
      Features back;
      back.environment.cpus_available = 2;
      const auto read = read_feature(feature, Cursor(out.view().first(size)), back);
      if (read)
        continue;  // a shorter section may be whole: trailing padding, optional parts, lists of records
      EXPECT_FALSE(back.present[feature]) << feature_name(feature) << " cut to " << size;
      EXPECT_TRUE(back.environment.build_ids.empty());
      EXPECT_TRUE(back.environment.command_line.empty());
      EXPECT_FALSE(back.environment.hostname);
    }
  }
}

TEST(Features, AnUnknownOneIsKeptAsBytes) {
  ByteWriter body;
  body.u64(42);
  Features features;
  ASSERT_TRUE(read_feature(200, Cursor(body.view()), features));
  ByteWriter out;
  ASSERT_TRUE(write_feature(200, features, out));
  EXPECT_TRUE(std::ranges::equal(out.view(), body.view()));
  EXPECT_EQ(feature_name(200), "");
}

TEST(Features, ACountThatCannotFitIsRefusedBeforeAnythingIsReserved) {
  for (const std::uint32_t feature : {abi::kFeatureCmdline, abi::kFeatureEventDesc, abi::kFeatureNumaTopology,
                                      abi::kFeaturePmuMappings, abi::kFeatureBpfBtf, abi::kFeaturePmuCaps}) {
    ByteWriter body;
    body.u32(0xffffffff).u32(0xffffffff).u64(0).u64(0);
    Features features;
    EXPECT_FALSE(read_feature(feature, Cursor(body.view()), features)) << feature_name(feature);
  }
}

TEST(Features, TheCpuTopologyNeedsTheNumberOfCpus) {
  const Features features = full_features();
  ByteWriter out;
  ASSERT_TRUE(write_feature(abi::kFeatureCpuTopology, features, out));
  Features back;
  back.environment.cpus_available = 2;
  ASSERT_TRUE(read_feature(abi::kFeatureCpuTopology, Cursor(out.view()), back));
  ASSERT_EQ(back.environment.cpu_topology->cpus.size(), 2u);
  EXPECT_EQ(back.environment.cpu_topology->cpus[1].core, 1u);
  EXPECT_EQ(back.environment.cpu_topology->dies, (std::vector<std::string>{"0-1"}));
}

TEST(Features, NumbersOfCpusThatCannotBeAreRefused) {
  const auto is_read = [](std::uint32_t available, std::uint32_t online) {
    ByteWriter body;
    body.u32(available).u32(online);
    Features features;
    return static_cast<bool>(read_feature(abi::kFeatureNrCpus, Cursor(body.view()), features));
  };
  EXPECT_TRUE(is_read(2, 1));
  EXPECT_FALSE(is_read(2, 3));
  EXPECT_FALSE(is_read(0, 0));
  EXPECT_FALSE(is_read(0x7fffffff, 1));
}

TEST(Features, ATopologyOfMoreOrFewerCpusThanThereAreIsRefused) {
  const Features features = full_features();
  ByteWriter out;
  ASSERT_TRUE(write_feature(abi::kFeatureCpuTopology, features, out));
  for (const std::uint32_t cpus : {1U, 3U, 1000U}) {
    Features back;
    back.environment.cpus_available = cpus;
    EXPECT_FALSE(read_feature(abi::kFeatureCpuTopology, Cursor(out.view()), back)) << cpus;
  }
}

TEST(Features, SamplesThatEndBeforeTheyBeginAreRefused) {
  ByteWriter body;
  body.u64(6).u64(5);
  Features features;
  EXPECT_FALSE(read_feature(abi::kFeatureSampleTime, Cursor(body.view()), features));
}

TEST(Features, ASectionThatComesTwiceReplacesTheFirst) {
  const Features features = full_features();
  Features back;
  for (int time = 0; time < 2; ++time) {
    for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
      ByteWriter out;
      if (!write_feature(feature, features, out)) continue;
      EXPECT_TRUE(read_feature(feature, Cursor(out.view()), back)) << feature_name(feature);
    }
  }
  EXPECT_EQ(back.environment.build_ids.size(), 2 * features.environment.build_ids.size()) << "these add up";
  back.environment.build_ids = features.environment.build_ids;
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    ByteWriter once, twice;
    if (!write_feature(feature, features, once)) continue;
    EXPECT_TRUE(write_feature(feature, back, twice));
    EXPECT_TRUE(std::ranges::equal(once.view(), twice.view())) << feature_name(feature);
  }
}

TEST(Features, ZerosUpToAMultipleOf8AfterASectionSayNothing) {
  const Features features = full_features();
  Features back;
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    ByteWriter out;
    if (!write_feature(feature, features, out)) continue;
    out.zeros((8 - out.size() % 8) % 8);
    const auto read = read_feature(feature, Cursor(out.view()), back);
    EXPECT_TRUE(read) << feature_name(feature) << ": " << (read ? "" : read.error().what);
  }
  // Without dies, an odd number of strings leaves 4 bytes.
  Features one_die = features, read_back;
  one_die.environment.cpu_topology->dies.clear();
  ByteWriter cpus, topology;
  ASSERT_TRUE(write_feature(abi::kFeatureNrCpus, one_die, cpus));
  ASSERT_TRUE(write_feature(abi::kFeatureCpuTopology, one_die, topology));
  topology.zeros(4);
  ASSERT_TRUE(read_feature(abi::kFeatureNrCpus, Cursor(cpus.view()), read_back));
  const auto read = read_feature(abi::kFeatureCpuTopology, Cursor(topology.view()), read_back);
  EXPECT_TRUE(read) << (read ? "" : read.error().what);
  topology.u8(1).u8(0).u8(0).u8(0);
  EXPECT_FALSE(read_feature(abi::kFeatureCpuTopology, Cursor(topology.view()), read_back));
}

TEST(Features, ABuildIdWithoutItsSizeIsWithoutItsPadding) {
  ByteWriter out;
  out.u32(abi::kRecordBuildId).u16(abi::kCpumodeUser).u16(100).u32(1);
  for (std::uint8_t i = 1; i <= 16; ++i) out.u8(i);
  out.zeros(8).padded_text("/system/lib64/libc.so", 64);
  Features features;
  ASSERT_TRUE(read_feature(abi::kFeatureBuildId, Cursor(out.view()), features));
  ASSERT_EQ(features.environment.build_ids.size(), 1u);
  EXPECT_EQ(features.environment.build_ids[0].build_id.hex(), "0102030405060708090a0b0c0d0e0f10");
}

}  // namespace
}  // namespace tacho::format
