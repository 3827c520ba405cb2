// Pseudonyms: equal ones for equal words, so that views group as before, and without the key nobody finds the
// word without the key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::report {

class Aliases {
 public:
  static constexpr std::size_t kLength = 10;  // letters: 50 bits

  // A random key, which is gone with this object. Fails when the system gives no random numbers.
  static Result<Aliases> create();
  // The same aliases for the same text: who knows the text can try words.
  static Aliases of_key(std::string_view text);

  // Letters and digits; the empty text stays empty.
  std::string of(std::string_view text) const;
  // A number in place of a number; 0 stays.
  std::uint64_t of_number(std::uint64_t number) const;
  // As many bytes as there are in `bytes`, in their place; what is all zero stays.
  void replace(std::span<std::byte> bytes) const;

 private:
  using Key = std::array<std::uint64_t, 2>;
  explicit Aliases(const Key& key) : key_(key) {}
  std::uint64_t hash(std::string_view text, std::uint64_t number = 0) const;

  Key key_;
};

// What is done to the paths of files.
enum class PathRule : std::uint8_t {
  Keep,
  Users,  // the names of users in the places where their homes are
  Last,   // the last part stays; folders that every system has stay as well, others become one alias
  Hash,   // an alias for all
};

// A path, or the name that perf gives to what is no file ("[vdso]", "//anon", "/dev/zero (deleted)"), which
// stays; names that programs give to their memory ("/memfd:NAME", "/dev/shm/NAME", "[anon:NAME]") become
// aliases. What names are read by stays too: " (deleted)" and the ending of kernel modules.
std::string hidden_path(std::string_view path, PathRule rule, const Aliases& aliases);
// A text in which a path may stand anywhere ("LazyCompile:*run file:///home/me/a b.js:7"): all from where the
// first one begins to the last '/' counts as its folder, so that nothing of a path with blanks or of a second
// one is left. Its last part ends with the next ':'.
std::string hidden_paths_in(std::string_view text, PathRule rule, const Aliases& aliases);
// An event's name: the file of "uprobe:FILE:FUNCTION" and "usdt:FILE:PROVIDER:NAME" is a path, however it is
// written; "cpu/event=1/u" and "mem:0x1234/8:rw" hold none.
std::string hidden_event(std::string_view name, PathRule rule, const Aliases& aliases);
// A section of a BPF object, by which libbpf attaches the program: "uprobe//usr/bin/x:main",
// "kprobe/vfs_read".
std::string hidden_section(std::string_view name, PathRule rule, const Aliases& aliases);
// The user whose home folder a path is in, and the position of the name in the path.
std::optional<std::string_view> user_in(std::string_view path);

}  // namespace tacho::report
