#include "report/views/script/kernel_values.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <seccomp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

namespace tacho::report {
namespace {

// What tracepoints have beside BPF payloads, whose fields say themselves how they are shown.
bool is_of_kernel(std::string_view event) { return event.find(':') != std::string_view::npos; }

bool is_number(const PayloadField& field) {
  return !is_list(field) &&
         (field.kind == format::FieldKind::Signed || field.kind == format::FieldKind::Unsigned);
}

// libseccomp calls machines as GCC does.
std::uint32_t machine(std::string_view architecture) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"i386", "x86"},    {"i486", "x86"},        {"i586", "x86"},        {"i686", "x86"},
      {"armv7l", "arm"},  {"x86_64", "x86_64"},   {"aarch64", "aarch64"}, {"ppc64le", "ppc64le"},
      {"s390x", "s390x"}, {"riscv64", "riscv64"},
  };
  const auto row = std::ranges::find(kNames, architecture, &std::pair<std::string_view, const char*>::first);
  return row == std::end(kNames) ? 0 : ::seccomp_arch_resolve_name(row->second);
}

NumberText call_text(std::string_view architecture) {
  const std::uint32_t of = machine(architecture);
  if (of == 0) return {};
  return [of](std::int64_t number) {
    const bool is_possible = number >= 0 && number < 0x10000;
    const std::unique_ptr<char, decltype(&std::free)> name(
        is_possible ? ::seccomp_syscall_resolve_num_arch(of, static_cast<int>(number)) : nullptr, &std::free);
    return name != nullptr ? std::string(name.get()) : fmt::format("{}", number);
  };
}

std::string returned_text(std::int64_t number) {
  constexpr std::int64_t kMostErrors = 4095;
  const bool is_error = number < 0 && number >= -kMostErrors;
  const char* const name = is_error ? ::strerrorname_np(static_cast<int>(-number)) : nullptr;
  return name != nullptr ? fmt::format("-{}", name) : fmt::format("{}", number);
}

// The bits of task states as kernels since 4.14 report them, and the mark of those who could go on.
std::string state_text(std::int64_t state) {
  constexpr std::string_view kLetters = "SDTtXZPI";
  std::string text;
  for (std::size_t bit = 0; bit < kLetters.size(); ++bit)
    if ((state >> bit & 1) != 0) text.append(text.empty() ? "" : "|").append(1, kLetters[bit]);
  return text.empty() ? "R" : text;
}

std::string device_text(std::int64_t device) {
  constexpr int kMinorBits = 20;
  const auto bits = static_cast<std::uint32_t>(device);
  return fmt::format("{}:{}", bits >> kMinorBits, bits & ((1U << kMinorBits) - 1));
}

}  // namespace

NumberText kernel_number_text(std::string_view event, const PayloadField& field,
                              std::string_view architecture) {
  if (!is_of_kernel(event) || !is_number(field)) return {};
  const bool is_raw = event.starts_with("raw_syscalls:");
  if (field.name == "__syscall_nr" || (is_raw && field.name == "id")) return call_text(architecture);
  const bool is_end = event == "raw_syscalls:sys_exit" || event.starts_with("syscalls:sys_exit_");
  if (is_end && field.name == "ret") return returned_text;
  if (event == "sched:sched_switch" && field.name == "prev_state") return state_text;
  if ((field.name == "dev" || field.name == "s_dev") && field.bit_size == 32) return device_text;
  return {};
}

bool is_internet_address(const PayloadField& field) {
  return field.kind == format::FieldKind::Unsigned && field.bit_size == 8 &&
         (field.count == 4 || field.count == 16) && field.name.find("addr") != std::string::npos;
}

std::string internet_address(const PayloadField& field, Bytes payload, std::endian order) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::uint32_t i = 0; i < field.count; ++i) {
    const auto value = read_field(field, payload, order, i);
    if (!value) return {};
    bytes[i] = static_cast<std::uint8_t>(bits_of(*value));
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = field.count == 4 ? AF_INET : AF_INET6;
  return ::inet_ntop(family, bytes.data(), text.data(), text.size()) != nullptr ? text.data() : std::string();
}

}  // namespace tacho::report
