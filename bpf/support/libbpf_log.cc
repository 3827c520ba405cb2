#include "bpf/support/libbpf_log.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "format/base/parse_text.h"

namespace tacho::bpf {

namespace {

// The collector of this thread: libbpf's callback has no user argument.
thread_local std::string* collecting = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

int collect(libbpf_print_level level, const char* format, va_list arguments) noexcept {
  if (collecting == nullptr || level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (size <= 0) return 0;
  const std::size_t start = collecting->size();
  collecting->resize(start + static_cast<std::size_t>(size) + 1);
  std::vsnprintf(collecting->data() + start, static_cast<std::size_t>(size) + 1, format, arguments);
  collecting->pop_back();  // the NUL
  return size;
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
    const bool ours =
        !in_verifier && line.starts_with(kName) && line.find("ulimit -l") == std::string_view::npos;
    if (line.ends_with(kEnd)) in_verifier = false;
    if (ours) kept.emplace_back(line.substr(kName.size()));
  }
  return kept;
}

}  // namespace tacho::bpf
