#include "bpf/support/libbpf_log.h"

#include <bpf/libbpf.h>

#include <cstdio>
#include <utility>

#include "format/base/parse_text.h"

namespace tacho::bpf {

namespace {

// The collector of this thread: libbpf's callback has no user argument.
thread_local std::string* collecting = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

int collect(libbpf_print_level level, const char* format, va_list arguments) noexcept {
  if (collecting != nullptr && level != LIBBPF_DEBUG) append_formatted(*collecting, format, arguments);
  return 0;  // ignored by libbpf
}

constexpr std::string_view kBegin = "-- BEGIN PROG LOAD LOG --\n";
constexpr std::string_view kEnd = "-- END PROG LOAD LOG --";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(format::take_until(text, '\n'));
  return lines;
}

}  // namespace

LibbpfLog::LibbpfLog() : outer_(std::exchange(collecting, &text_)) { libbpf_set_print(collect); }
LibbpfLog::~LibbpfLog() { collecting = outer_; }

std::string refused_program(std::string_view log) {
  // "libbpf: prog 'on_read': BPF program load failed: ...", or "... failed to find kernel BTF type ID of
  // ...": the last program named outside the verifier's text is the one that stopped the load.
  std::string found;
  for (const std::string& line : libbpf_lines(log)) {
    constexpr std::string_view kProgram = "prog '";
    if (!line.starts_with(kProgram)) continue;
    const auto end = line.find('\'', kProgram.size());
    if (end != std::string::npos) found = line.substr(kProgram.size(), end - kProgram.size());
  }
  return found;
}

std::string verifier_tail(std::string_view log, std::size_t lines) {
  const auto begin = log.rfind(kBegin);
  if (begin == std::string_view::npos) return "";
  std::string_view body = log.substr(begin + kBegin.size());
  body = body.substr(0, body.find(kEnd));
  auto all = lines_of(body);
  while (!all.empty() && all.back().empty()) all.pop_back();
  std::string tail;
  const std::size_t first = all.size() > lines ? all.size() - lines : 0;
  for (std::size_t i = first; i < all.size(); ++i)
    (tail += "  ").append(all[i]) += i + 1 < all.size() ? "\n" : "";
  return tail;
}

std::vector<std::string> libbpf_lines(std::string_view log) {
  constexpr std::string_view kName = "libbpf: ";
  std::vector<std::string> kept;
  bool in_verifier = false;
  for (std::string_view line : lines_of(log)) {
    if (line.ends_with(kBegin.substr(0, kBegin.size() - 1))) in_verifier = true;
    const bool is_advice = line.find("ulimit -l") != std::string_view::npos;
    const bool is_kept = !in_verifier && !is_advice && format::take_prefix(line, kName);
    if (line.ends_with(kEnd)) in_verifier = false;
    if (is_kept) kept.emplace_back(line);
  }
  return kept;
}

std::string last_libbpf_line(std::string_view log) {
  const auto lines = libbpf_lines(log);
  return lines.empty() ? "" : lines.back();
}

std::string refusal_in_log(std::string_view log) {
  std::string why = verifier_tail(log, kVerifierLines);
  if (why.empty()) why = last_libbpf_line(log);
  return why.empty() ? why : ": " + why;
}

void append_formatted(std::string& text, const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (size <= 0) return;
  const std::size_t start = text.size();
  text.resize(start + static_cast<std::size_t>(size) + 1);
  std::vsnprintf(text.data() + start, static_cast<std::size_t>(size) + 1, format, arguments);
  text.pop_back();  // the NUL
}

}  // namespace tacho::bpf
