// Pseudonyms for private words, and the names of files and events that contain such words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::report {

// Pseudonyms: a keyed hash (SipHash) of each word. Equal words get equal pseudonyms, so views group as
// before; without the key the word cannot be computed from its pseudonym.
class Aliases {
 public:
  static constexpr std::size_t kLength = 10;  // characters, 5 bits each
  // With a random key, which only this object has. Fails when the system gives no random numbers.
  static Result<Aliases> create();
  // With a key made from `text`: the same text gives the same aliases. A reader with the key can guess words
  // and compare their aliases.
  static Aliases of_key(std::string_view text);

  // An alias of letters and digits; the empty text stays empty.
  std::string alias_of(std::string_view text) const;
  // An alias for a number; 0 stays 0.
  std::uint64_t of_number(std::uint64_t number) const;
  // Overwrites `bytes` with an alias of the same size; all zeros stay zeros.
  void replace(std::span<std::byte> bytes) const;

 private:
  using Key = std::array<std::uint64_t, 2>;
  explicit Aliases(const Key& key) : key_(key) {}
  std::uint64_t hash(std::string_view text, std::uint64_t number = 0) const;

  Key key_;
};

// How paths of files are redacted.
enum class PathRule : std::uint8_t {
  Keep,
  Users,  // user names in paths of home directories become aliases
  Last,   // the last part stays, and so do system folders; other folders become one alias
  Hash,   // the whole path becomes an alias
};

// Redacts a path. perf's names for mappings without a file ("[vdso]", "//anon", "/dev/zero (deleted)") stay;
// names that programs choose ("/memfd:NAME", "/dev/shm/NAME", "[anon:NAME]") become aliases. " (deleted)" and
// the suffix of kernel modules stay, since symbol lookup needs them.
std::string hidden_path(std::string_view path, PathRule rule, const Aliases& aliases);
// Redacts a text with a path anywhere in it ("LazyCompile:*run file:///home/me/a b.js:7"). Everything from
// the start of the first path to the last '/' is taken as the folder, so that nothing of a path with blanks
// or of a second path stays. The last part ends at the next ':'.
std::string hidden_paths_in(std::string_view text, PathRule rule, const Aliases& aliases);
// Redacts an event's name. FILE in "uprobe:FILE:FUNCTION" and "usdt:FILE:PROVIDER:NAME" is a path;
// "cpu/event=1/u" and "mem:0x1234/8:rw" have none.
std::string hidden_event(std::string_view name, PathRule rule, const Aliases& aliases);
// Redacts the section name by which libbpf attaches a BPF program: "uprobe//usr/bin/x:main",
// "kprobe/vfs_read".
std::string hidden_section(std::string_view name, PathRule rule, const Aliases& aliases);
// The user name in a path below a home directory; the result points into `path`.
std::optional<std::string_view> user_in(std::string_view path);

}  // namespace tacho::report
