// The rules of tacho redact: for each class of private content, whether it is dropped, hashed or moved; and
// the pseudonyms that hashing gives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/capture_reader.h"
#include "format/container/content_classes.h"
#include "format/records/record.h"
#include "format/records/sample.h"

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

// Addresses of the kernel are in the upper half.
inline constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63;

// Undoes KASLR: moves kernel addresses to where they would be without it, since the kernel's load address is
// private. Distances within the kernel's image, and among modules and BPF programs, stay the same.
class KaslrRemap {
 public:
  // The start of the kernel's text, from its mapping.
  void see_text(std::uint64_t start);
  // Any address of kernel code. The lowest one of modules is the start of the modules.
  void see_code(std::uint64_t address);

  // An address of the kernel's image or modules, moved; any other as it is.
  std::uint64_t moved(std::uint64_t address) const;
  // Redacts an address in the kernel's half: code is moved; pointers to kernel data, which would reveal the
  // load address too, become aliases.
  std::uint64_t hidden(std::uint64_t address, const Aliases& aliases) const;
  // Redacts such addresses (16 hexadecimal digits) in a text: "mem:0xffffffff9a601234/8:rw".
  std::string hidden_in(std::string_view text, const Aliases& aliases) const;

 private:
  // x86-64: the image is between these, by a multiple of 2 MB; modules above, up to the fixed mappings.
  static constexpr std::uint64_t kImages = 0xffffffff80000000, kUsualText = 0xffffffff81000000,
                                 kModules = 0xffffffffc0000000, kModulesEnd = 0xffffffffff000000;
  // Elsewhere image and modules are within this distance, and move together.
  static constexpr std::uint64_t kNear = std::uint64_t{4} << 30, kOtherText = 0xffff800080000000;
  std::uint64_t text() const;
  // The moved address; nullopt: it is neither in the image nor in a module.
  std::optional<std::uint64_t> place_of(std::uint64_t address) const;

  std::uint64_t mapped_text_ = 0;  // of see_text()
  std::uint64_t lowest_in_image_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest_module_ = std::numeric_limits<std::uint64_t>::max();
};

using format::Content;

enum class How : std::uint8_t {
  Keep,
  Drop,
  Hash,  // aliases (Aliases)
  Last,  // only the last part of a path stays
  Move,  // kernel addresses (KaslrRemap)
};
// The word for it in the feature section CONTENT.
std::string_view state_of(How how);

class Redaction {
 public:
  Redaction();  // each class has its default

  How how_of(Content content) const { return how_[static_cast<std::size_t>(content)]; }
  bool hides(Content content) const { return how_of(content) != How::Keep; }
  PathRule path_rule() const;

  // `classes` is "comm,paths" or "all". Refused when a class is unknown or does not allow the treatment.
  Result<> keep(std::string_view classes);
  Result<> hide(std::string_view classes);  // as by default
  Result<> drop(std::string_view classes);
  Result<> hash(std::string_view classes);

  // "cmdline  dropped  can be kept or hashed": a line for each class, for --help.
  static std::string table();

 private:
  Result<> set(std::string_view option, std::string_view classes, How how, bool is_usual);

  std::array<How, format::kContentCount> how_{};
};

// Counts the private content of a capture by class, with an example for the classes that `tacho header` shows
// anyway.
class Census {
 public:
  struct Count {
    std::uint64_t number = 0;
    std::string unit;     // of `number`
    std::string example;  // unchanged; empty: there is none, or it should not be shown
  };

  void see_head(const format::EventSet& events, const format::Features& features);
  void see(const format::RecordView& record, const format::EventSet& events);
  // The same for records that are parsed already.
  void see_sample(const format::Sample& sample, const format::EventAttr& attr);
  void see_other(const format::Record& record);

  // By the number of the Content.
  std::array<Count, format::kContentCount> counts() const;
  const KaslrRemap& kernel() const { return kernel_; }
  bool has_stacks() const { return stack_bytes_ != 0; }
  // ns to subtract from every time to hide the time of day; 0 when the recording clock does not reveal it.
  std::uint64_t time_shift() const;

 private:
  void see_path(std::string_view path);
  void see_pack(const format::Features& features);

  std::unordered_set<std::string> paths_, source_files_, comms_, containers_;
  std::string path_example_, comm_example_, container_example_, host_example_;
  std::uint64_t words_ = 0, hosts_ = 0, users_ = 0, namespaces_ = 0, payloads_ = 0, stack_bytes_ = 0,
                registers_ = 0, addresses_ = 0, kernel_addresses_ = 0, kernel_lists_ = 0, clocks_ = 0,
                trace_bytes_ = 0;
  bool is_wall_clock_ = false;
  std::uint64_t first_time_ = std::numeric_limits<std::uint64_t>::max();  // ns
  KaslrRemap kernel_;
  format::SampleParser samples_;
};

}  // namespace tacho::report
