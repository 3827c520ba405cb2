// Log lines for -v, and a collector of libbpf's messages.
#pragma once

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

// What libbpf says while it works: it prints through one callback for the whole process. LibbpfLog collects
// what it says to this thread for as long as it lives; without one, nothing is printed.
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

// From the text of a failed load. The program that the kernel refused; empty when it was something else.
std::string refused_program(std::string_view log);
// How many of the verifier's lines messages have.
inline constexpr std::size_t kVerifierLines = 20;
// The verifier's last `lines` lines about it, without libbpf's own; empty when the kernel gave none.
std::string verifier_tail(std::string_view log, std::size_t lines);
// libbpf's own lines without its name in front, without the verifier's text, and without the advice to raise
// "ulimit -l", which is wrong on every kernel that runs BPF with BTF.
std::vector<std::string> libbpf_lines(std::string_view log);

}  // namespace tacho::bpf
