#include "record/doctor/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tacho::record {
namespace {

using State = Finding::State;

HostFacts able_host() {
  HostFacts facts;
  facts.kernel = "6.1.0";
  facts.machine = "x86_64";
  facts.program = "/usr/bin/tacho-record";
  facts.is_root = true;
  facts.capabilities = ~std::uint64_t{0};
  facts.host = {
      .online_cpus = {0, 1}, .page_size = 4096, .max_sample_rate = 100000, .perf_event_paranoid = 2};
  facts.counts_losses = facts.has_build_ids = true;
  facts.tracefs = "/sys/kernel/tracing";
  facts.can_read_tracefs = facts.has_kprobes = facts.has_uprobes = true;
  facts.shows_kernel_symbols = facts.has_btf = true;
  facts.programs = {{"tracepoint", "SEC(\"tp/...\")", ""}};
  facts.clang = "clang";
  facts.cgroup_mount = "/sys/fs/cgroup";
  facts.ring_kib = 516;
  facts.locked_bytes = 8 << 20;
  facts.descriptors = 1 << 20;
  return facts;
}

Finding finding(const HostFacts& facts, const std::string& name) {
  const auto findings = judge(facts);
  const auto found = std::ranges::find(findings, name, &Finding::name);
  EXPECT_NE(found, findings.end()) << name;
  return found == findings.end() ? Finding{} : *found;
}

TEST(Doctor, AHostThatCanDoEverythingHasNothingToFix) {
  for (const Finding& each : judge(able_host())) {
    EXPECT_EQ(each.state, State::Good) << each.name << ": " << each.value;
    EXPECT_EQ(each.consequence + each.remedy, "") << each.name;
  }
  EXPECT_TRUE(can_record(able_host()));
}

TEST(Doctor, ProgramsOfKprobesRunAtUprobesWithoutKprobes) {
  HostFacts facts = able_host();
  facts.programs = {{"kprobe", "SEC(\"kprobe/...\")", ""}};
  EXPECT_EQ(finding(facts, "BPF kprobe").value, "yes");
  facts.has_kprobes = false;
  EXPECT_EQ(finding(facts, "BPF kprobe").value, "yes, for uprobes");
}

TEST(Doctor, ACommandQuotesThePathOfTheProgram) {
  HostFacts facts = able_host();
  facts.is_root = false;
  facts.capabilities = 0;
  facts.program = "/opt/my tools/tacho-record";
  facts.shows_kernel_symbols = false;
  facts.kernel_refusal = facts.unwinding_refusal = facts.programs.front().refusal = "Permission denied";
  for (const char* name : {"rights", "kernel mode", "kernel symbols", "BPF tracepoint", "unwinding"})
    EXPECT_NE(finding(facts, name).remedy.find("+ep '/opt/my tools/tacho-record'"), std::string::npos)
        << name;
}

TEST(Doctor, CapabilitiesOfAUserNamespaceAreNoRights) {
  HostFacts facts = able_host();
  facts.is_in_user_namespace = true;
  EXPECT_EQ(finding(facts, "rights").state, Finding::State::Limited);
  EXPECT_NE(finding(facts, "rights").consequence.find("no BPF programs"), std::string::npos);
}

TEST(Doctor, EveryLackSaysWhatFollows) {
  HostFacts facts;
  facts.programs = {{"fentry", "SEC(\"fentry/...\")", "Operation not permitted"}};
  facts.own_refusal = facts.kernel_refusal = facts.system_refusal = facts.hardware_refusal =
      facts.cgroup_refusal = "Permission denied";
  facts.unwinding_refusal = "the kernel does not take it";
  facts.lockdown = "confidentiality";
  facts.is_in_pid_namespace = true;
  facts.host.online_cpus = {0, 1};
  facts.host.perf_event_paranoid = 3;
  std::size_t without_remedy = 0;
  for (const Finding& each : judge(facts)) {
    EXPECT_NE(each.state, State::Good) << each.name;
    EXPECT_NE(each.consequence, "") << each.name;
    without_remedy += each.remedy.empty() ? 1 : 0;
  }
  EXPECT_LE(without_remedy, 1u) << "an old kernel is the host's business";
  EXPECT_FALSE(can_record(facts));
}

TEST(Doctor, CapabilitiesAreNamedWithTheCommandThatGivesThem) {
  HostFacts facts = able_host();
  facts.is_root = false;
  facts.capabilities = std::uint64_t{1} << 38 | std::uint64_t{1} << 39;
  facts.ring_kib = 1 << 20;
  const Finding rights = finding(facts, "rights");
  EXPECT_EQ(rights.state, State::Limited);
  const std::string command =
      "setcap cap_perfmon,cap_bpf,cap_syslog,cap_sys_ptrace,cap_dac_read_search+ep /usr/bin/tacho-record";
  EXPECT_NE(rights.remedy.find(command), std::string::npos) << rights.remedy;
  EXPECT_EQ(finding(facts, "perf_event_paranoid").state, State::Good) << "cap_perfmon is enough";
  facts.capabilities = 0;
  EXPECT_NE(finding(facts, "perf_event_paranoid").remedy.find("sysctl"), std::string::npos);
  facts.kernel_refusal = facts.system_refusal = "Permission denied";
  std::size_t commands = 0;
  for (const Finding& each : judge(facts)) {
    if (each.remedy.find("setcap") == std::string::npos) continue;
    EXPECT_NE(each.remedy.find(command), std::string::npos) << each.name << ": " << each.remedy;
    ++commands;
  }
  EXPECT_GT(commands, 2U) << "setcap replaces what the file has, so each names all";
}

TEST(Doctor, RingsAreComparedWithWhatMayBeLocked) {
  HostFacts facts = able_host();
  facts.capabilities = std::uint64_t{1} << 38;
  facts.locked_bytes = 64 << 10;
  EXPECT_EQ(finding(facts, "ring memory").state, State::Limited);
  facts.ring_kib = 4096;
  EXPECT_EQ(finding(facts, "ring memory").state, State::Good);
}

TEST(Doctor, OwnProcessesAreEnoughToRecord) {
  HostFacts facts = able_host();
  facts.system_refusal = "Permission denied";
  EXPECT_TRUE(can_record(facts));
}

TEST(Doctor, JsonHoldsWhateverTheHostSays) {
  std::vector<Finding> findings = judge(able_host());
  findings.front().value = "a \"b\" \\ \x1b[31m\n\xff";
  const std::string json = doctor_json(findings, true);
  EXPECT_NE(json.find(R"("value":"a \"b\" \\\\ \\x1b[31m\\x0a\\xff")"), std::string::npos) << json;
  EXPECT_EQ(json.find('\x1b'), std::string::npos);
  EXPECT_EQ(doctor_text(findings, true).find('\x1b'), std::string::npos);
}

// What hides the names depends on the setting; what is set already is not advised.
TEST(Doctor, HiddenKernelNamesAreFixedByTheirSetting) {
  HostFacts facts = able_host();
  facts.shows_kernel_symbols = false;
  for (const auto& [restricted, remedy] :
       {std::pair(0, "setcap cap_perfmon,"), std::pair(1, "kernel.kptr_restrict=0"),
        std::pair(2, "kernel.kptr_restrict=1")}) {
    facts.kptr_restrict = restricted;
    EXPECT_NE(finding(facts, "kernel symbols").remedy.find(remedy), std::string::npos) << restricted;
  }
}

}  // namespace
}  // namespace tacho::record
