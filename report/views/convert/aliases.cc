#include "report/views/convert/aliases.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace tacho::report {
namespace {

// SipHash-2-4 (Aumasson, Bernstein 2012): short inputs, and without the key nothing is told about them.
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

// Folders that tell nothing about whose system it is.
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
// Names of mappings that are no files.
constexpr std::string_view kNoFiles[] = {"[",     "//",          "/anon_hugepage", "/dev/",
                                         "/SYSV", "anon_inode:", "socket:"};
constexpr std::string_view kModuleEndings[] = {".ko", ".ko.gz", ".ko.xz", ".ko.zst"};
constexpr std::string_view kHomes[] = {"/home/", "/Users/"};

bool starts_with_any(std::string_view text, std::span<const std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); });
}

// "jit-123.dump" says by its name whose code it has.
bool is_jitdump(std::string_view name) { return name.starts_with("jit-") && name.ends_with(".dump"); }

std::string hidden_folder(std::string_view folder, const Aliases& aliases) {
  if (folder.empty() || std::ranges::find(kCommonFolders, folder) != std::end(kCommonFolders))
    return std::string(folder);
  return (folder.starts_with('/') ? "/" : "") + aliases.of(folder);
}

std::string hidden_user(std::string_view path, const Aliases& aliases) {
  const auto user = user_in(path);
  if (!user) return std::string(path);
  const auto begin = static_cast<std::size_t>(user->data() - path.data());
  return std::string(path.substr(0, begin)) + aliases.of(*user) +
         std::string(path.substr(begin + user->size()));
}

std::string hidden_file(std::string_view path, PathRule rule, const Aliases& aliases) {
  if (rule == PathRule::Users) return hidden_user(path, aliases);
  const auto slash = path.rfind('/');
  const std::string_view folder =
      slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const std::string between = slash == std::string_view::npos ? "" : "/";
  if (rule == PathRule::Last || is_jitdump(name))
    return hidden_folder(folder, aliases) + between + std::string(name);
  std::string hidden = between + aliases.of(path);
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

std::string Aliases::of(std::string_view text) const {
  if (text.empty()) return {};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  std::string alias;
  std::uint64_t rest = hash(text);
  for (; alias.size() < kLength; rest >>= 5) alias += kLetters[rest & 31];
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
  for (const std::string_view homes : kHomes) {
    const auto at = path.find(homes);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = path.substr(at + homes.size());
    const std::string_view user = rest.substr(0, rest.find('/'));
    if (!user.empty()) return user;
  }
  return std::nullopt;
}

std::string hidden_path(std::string_view path, PathRule rule, const Aliases& aliases) {
  if (rule == PathRule::Keep || path.empty() || starts_with_any(path, kNoFiles)) return std::string(path);
  std::string_view end;
  if (path.ends_with(kDeleted)) {
    path.remove_suffix(kDeleted.size());
    end = kDeleted;
  }
  constexpr std::string_view kMemory = "/memfd:";
  if (path.starts_with(kMemory) && rule != PathRule::Users)
    return std::string(kMemory) + aliases.of(path.substr(kMemory.size())) + std::string(end);
  return hidden_file(path, rule, aliases) + std::string(end);
}

std::string hidden_paths_in(std::string_view text, PathRule rule, const Aliases& aliases) {
  constexpr std::string_view kBefore = " :=(,'\"", kBehind = " :,()'\"\t";
  if (rule == PathRule::Keep) return std::string(text);
  std::string hidden;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_begin =
        text[at] == '/' && (at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos);
    if (!is_begin) {
      hidden += text[at++];
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kBehind, at), text.size());
    const std::string_view path = text.substr(at, end - at);
    hidden += path.size() > 1 ? hidden_path(path, rule, aliases) : std::string(path);
    at = end;
  }
  return hidden;
}

}  // namespace tacho::report
