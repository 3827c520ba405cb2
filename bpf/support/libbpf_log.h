// Log lines for -v, and a collector of libbpf's messages.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::bpf {

using Log = std::function<void(std::string_view)>;

inline void say(const Log& log, std::string_view line) {
  if (log) log(line);
}

// Collects libbpf's messages for the calling thread during its lifetime. (libbpf has one callback for the
// process; without a LibbpfLog messages are dropped.)
//
//   LibbpfLog log;
//   if (bpf_object__load(object) != 0) return explain(log.text());
class LibbpfLog {
 public:
  LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;
  LibbpfLog(LibbpfLog&&) = delete;
  LibbpfLog& operator=(LibbpfLog&&) = delete;
  ~LibbpfLog();

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string* outer_;
};

// The program that the kernel refused, from the log of a failed load; empty: something else failed.
std::string refused_program(std::string_view log);
// The number of the verifier's lines in messages.
inline constexpr std::size_t kVerifierLines = 20;
// The verifier's last `lines` lines, without libbpf's; empty: there are none.
std::string verifier_tail(std::string_view log, std::size_t lines);
// libbpf's lines without its name, without the verifier's log, and without the advice to raise "ulimit -l",
// which is wrong on all kernels with BTF.
std::vector<std::string> libbpf_lines(std::string_view log);
// The last of them; empty: there are none.
std::string last_libbpf_line(std::string_view log);
// ": REASON" of a refusal: the verifier's last lines, else libbpf's last one. Empty: the log has neither.
std::string refusal_in_log(std::string_view log);

// Appends a formatted text, for libbpf's callbacks.
void append_formatted(std::string& text, const char* format, va_list arguments);

}  // namespace tacho::bpf
