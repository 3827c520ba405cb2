#include "report/aliases.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace tacho::report {
namespace {

// SipHash-2-4 (Aumasson, Bernstein 2012), a keyed hash for short inputs.
class SipHash {
 public:
  explicit SipHash(const std::array<std::uint64_t, 2>& key)
      : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
           key[1] ^ 0x7465646279746573} {}

  std::uint64_t of(std::string_view text) {
    const std::uint64_t size = text.size();
    for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t)))
      add(word_of(text));
    add(word_of(text) | size << 56);
    v_[2] ^= 0xff;
    for (int i = 0; i < 4; ++i) mix();
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  static std::uint64_t word_of(std::string_view text) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < std::min(text.size(), sizeof word); ++i)
      word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return word;
  }
  void add(std::uint64_t word) {
    v_[3] ^= word;
    mix();
    mix();
    v_[0] ^= word;
  }
  void mix() {
    v_[0] += v_[1];
    v_[1] = std::rotl(v_[1], 13) ^ v_[0];
    v_[0] = std::rotl(v_[0], 32);
    v_[2] += v_[3];
    v_[3] = std::rotl(v_[3], 16) ^ v_[2];
    v_[0] += v_[3];
    v_[3] = std::rotl(v_[3], 21) ^ v_[0];
    v_[2] += v_[1];
    v_[1] = std::rotl(v_[1], 17) ^ v_[2];
    v_[2] = std::rotl(v_[2], 32);
  }
  std::array<std::uint64_t, 4> v_;
};

constexpr std::string_view kDeleted = " (deleted)";

// System folders, which reveal nothing about the owner of the machine.
constexpr std::string_view kCommonFolders[] = {
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
};
// Names of mappings without a file.
constexpr std::string_view kNoFiles[] = {"//anon", "//toolong", "//enomem", "/anon_hugepage"};
constexpr std::string_view kDevices = "/dev/";
// Prefixes of memory that programs named.
constexpr std::string_view kNamedMemory[] = {"/memfd:", "/dev/shm/", "/dev/hugepages/", "/dev/mqueue/"};
// Prefixes of the kernel's names for anonymous memory that programs named: "[anon:NAME]".
constexpr std::string_view kNamedAreas[] = {"[anon:", "[anon_shmem:"};
constexpr std::string_view kNamesWithoutFile[] = {"anon_inode:", "socket:", "["};
constexpr std::string_view kSystemV = "/SYSV";  // System V shared memory, before its key in hexadecimal
// Kinds of section names that contain no path.
constexpr std::string_view kPlainSections[] = {
    "kprobe", "kretprobe",  "ksyscall", "kretsyscall", "tracepoint", "tp",  "raw_tracepoint",
    "raw_tp", "tp_btf",     "fentry",   "fexit",       "fmod_ret",   "lsm", "lsm_cgroup",
    "iter",   "perf_event", "cgroup",   "struct_ops",
};
constexpr std::string_view kFileProbes[] = {"uprobe", "uretprobe", "usdt"};
constexpr std::string_view kModuleEndings[] = {".ko", ".ko.gz", ".ko.xz", ".ko.zst"};
constexpr std::string_view kHomes[] = {"/home/", "/Users/"};

std::optional<std::string_view> start_of(std::string_view text, std::span<const std::string_view> starts) {
  for (const std::string_view start : starts)
    if (text.starts_with(start)) return start;
  return std::nullopt;
}

bool is_made_of(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF", kDigits = "0123456789",
                           kSmall = "abcdefghijklmnopqrstuvwxyz",
                           kWordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// Whether a name (without " (deleted)") reveals nothing about the machine.
bool is_no_file(std::string_view name) {
  if (std::ranges::find(kNoFiles, name) != std::end(kNoFiles)) return true;
  if (name.starts_with(kSystemV)) return is_made_of(name.substr(kSystemV.size()), kHexDigits);
  if (name.starts_with(kDevices)) return name.find('/', kDevices.size()) == std::string_view::npos;
  return start_of(name, kNamesWithoutFile) && name.find('/') == std::string_view::npos;
}

// "jit-123.dump": views find the process by the number in the name, so it stays.
bool is_jitdump(std::string_view name) { return name.starts_with("jit-") && name.ends_with(".dump"); }

std::string hidden_folder(std::string_view folder, const Aliases& aliases) {
  if (folder.empty() || std::ranges::find(kCommonFolders, folder) != std::end(kCommonFolders))
    return std::string(folder);
  return (folder.starts_with('/') ? "/" : "") + aliases.alias_of(folder);
}

// Replaces the user name of every home directory in the path.
std::string hidden_user(std::string_view path, const Aliases& aliases) {
  std::string hidden;
  while (const auto user = user_in(path)) {
    const auto begin = static_cast<std::size_t>(user->data() - path.data());
    hidden += std::string(path.substr(0, begin)) + aliases.alias_of(*user);
    path.remove_prefix(begin + user->size());
  }
  return hidden + std::string(path);
}

std::string hidden_file(std::string_view path, PathRule rule, const Aliases& aliases) {
  const auto begin = path.rfind('/') + 1;  // of the last part; 0 without a slash
  const std::string_view folder = path.substr(0, begin == 0 ? 0 : begin - 1), name = path.substr(begin);
  const std::string between = begin == 0 ? "" : "/";
  if (rule == PathRule::Last || is_jitdump(name))
    return hidden_folder(folder, aliases) + between + std::string(name);
  std::string hidden = between + aliases.alias_of(path);
  for (const std::string_view ending : kModuleEndings)
    if (name.ends_with(ending)) hidden += ending;
  return hidden;
}

}  // namespace

Result<Aliases> Aliases::create() {
  Key key{};
  if (::getrandom(key.data(), sizeof key, 0) != static_cast<ssize_t>(sizeof key))
    return system_error("random numbers", errno);
  return Aliases(key);
}

Aliases Aliases::of_key(std::string_view text) {
  const Key fixed{0x7461636f2d726564, 0x6163742d6b657931};
  const Key other{0x7461636f2d726564, 0x6163742d6b657932};
  return Aliases({SipHash(fixed).of(text), SipHash(other).of(text)});
}

std::uint64_t Aliases::hash(std::string_view text, std::uint64_t number) const {
  return SipHash({key_[0] ^ number, key_[1]}).of(text);
}

std::string Aliases::alias_of(std::string_view text) const {
  if (text.empty()) return {};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  std::string alias;
  for (std::uint64_t rest = hash(text); alias.size() < kLength; rest >>= 5) alias += kLetters[rest & 31];
  return alias;
}

std::uint64_t Aliases::of_number(std::uint64_t number) const {
  if (number == 0) return 0;
  const auto raw = std::bit_cast<std::array<char, sizeof number>>(number);
  return hash({raw.data(), raw.size()}, 1);
}

void Aliases::replace(std::span<std::byte> bytes) const {
  if (std::ranges::all_of(bytes, [](std::byte one) { return one == std::byte{}; })) return;
  const std::string before(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = hash(before, 2 + at);
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

std::optional<std::string_view> user_in(std::string_view path) {
  std::optional<std::string_view> first;
  for (const std::string_view homes : kHomes)
    for (std::size_t at = path.find(homes); at != std::string_view::npos; at = path.find(homes, at + 1)) {
      const std::string_view rest = path.substr(at + homes.size());
      const std::string_view user = rest.substr(0, rest.find('/'));
      if (user.empty()) continue;
      if (!first || user.data() < first->data()) first = user;
      break;
    }
  return first;
}

std::string hidden_path(std::string_view path, PathRule rule, const Aliases& aliases) {
  if (rule == PathRule::Keep || path.empty()) return std::string(path);
  if (rule == PathRule::Users) return hidden_user(path, aliases);
  std::string_view end;
  if (path.ends_with(kDeleted)) {
    path.remove_suffix(kDeleted.size());
    end = kDeleted;
  }
  if (const auto area = start_of(path, kNamedAreas))
    return std::string(*area) + aliases.alias_of(path.substr(area->size())) + "]" + std::string(end);
  if (is_no_file(path)) return std::string(path) + std::string(end);
  if (const auto folder = start_of(path, kNamedMemory))
    return std::string(*folder) + aliases.alias_of(path.substr(folder->size())) + std::string(end);
  return hidden_file(path, rule, aliases) + std::string(end);
}

namespace {

// The path from `begin` to the ':' after its last '/'.
std::string hidden_from(std::string_view text, std::size_t begin, PathRule rule, const Aliases& aliases) {
  const auto slash = text.rfind('/');
  const std::size_t from = slash == std::string_view::npos ? begin : std::max(begin, slash);
  const std::size_t end = std::min(text.find(':', from), text.size());
  const std::string_view path = text.substr(begin, end - begin);
  const std::string hidden = path == "/" ? std::string(path) : hidden_path(path, rule, aliases);
  return std::string(text.substr(0, begin)) + hidden + std::string(text.substr(end));
}

// The index of the file after "uprobe:", or after "uprobe.s/" in a section's name.
std::optional<std::size_t> file_of_probe(std::string_view name) {
  const auto kind = start_of(name, kFileProbes);
  if (!kind) return std::nullopt;
  const auto end = name.find_first_of(":/", kind->size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view between = name.substr(kind->size(), end - kind->size());
  return between.empty() || between.starts_with('.') ? std::optional(end + 1) : std::nullopt;
}

// "cpu/event=0x3c/u": a word, terms between two slashes, and modifiers.
bool is_of_pmu(std::string_view name) {
  const auto first = name.find('/'), last = name.rfind('/');
  return first != std::string_view::npos && first != 0 && first != last &&
         name.find('/', first + 1) == last && is_made_of(name.substr(0, first), kWordLetters) &&
         is_made_of(name.substr(last + 1), kWordLetters) &&
         name.find_first_of(" \t") == std::string_view::npos && !file_of_probe(name);
}

// "mem:0x1234/8:rw".
bool is_breakpoint(std::string_view name) {
  constexpr std::string_view kStart = "mem:0x";
  if (!name.starts_with(kStart)) return false;
  name.remove_prefix(std::min(name.find_first_not_of(kHexDigits, kStart.size()), name.size()));
  if (name.starts_with('/')) name.remove_prefix(std::min(name.find_first_not_of(kDigits, 1), name.size()));
  return name.empty() || (name.starts_with(':') && is_made_of(name.substr(1), std::string(kSmall) + ":"));
}

}  // namespace

std::string hidden_paths_in(std::string_view text, PathRule rule, const Aliases& aliases) {
  // Characters that may precede an absolute path, and a relative one.
  constexpr std::string_view kBeforeWhole = " \t:=(,'\"@*~<[{|;", kBeforeRest = " \t:@*~'\"";
  const auto slash = text.find('/');
  if (rule == PathRule::Keep || slash == std::string_view::npos) return std::string(text);
  if (slash != 0 && kBeforeWhole.find(text[slash - 1]) != std::string_view::npos)
    return hidden_from(text, slash, rule, aliases);
  const auto before = text.substr(0, slash).find_last_of(kBeforeRest);
  return hidden_from(text, before == std::string_view::npos ? 0 : before + 1, rule, aliases);
}

std::string hidden_event(std::string_view name, PathRule rule, const Aliases& aliases) {
  if (rule == PathRule::Keep) return std::string(name);
  if (const auto file = file_of_probe(name)) return hidden_from(name, *file, rule, aliases);
  return is_of_pmu(name) || is_breakpoint(name) ? std::string(name) : hidden_paths_in(name, rule, aliases);
}

std::string hidden_section(std::string_view name, PathRule rule, const Aliases& aliases) {
  if (rule == PathRule::Keep) return std::string(name);
  if (const auto file = file_of_probe(name)) return hidden_from(name, *file, rule, aliases);
  std::string_view kind = name.substr(0, name.find('/'));
  kind = kind.substr(0, kind.find('.'));
  const bool is_plain = std::ranges::find(kPlainSections, kind) != std::end(kPlainSections) &&
                        std::ranges::count(name, '/') <= 2 && name.find("//") == std::string_view::npos;
  return is_plain ? std::string(name) : hidden_paths_in(name, rule, aliases);
}

}  // namespace tacho::report
