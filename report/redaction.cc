#include "report/redaction.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <iterator>
#include <variant>
#include <vector>

#include "cli/message_text.h"
#include "format/base/file.h"
#include "format/extensions/symbol_pack.h"
#include "report/samples/filter.h"
#include "symbolize/frame.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint64_t kNanosecondsInSecond = 1'000'000'000;
constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;  // kernel addresses begin here
constexpr std::uint64_t kImageStep = 2 << 20, kPage = 4096;

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

void KaslrRemap::see_text(std::uint64_t start) {
  if (start < kHalf || start >= kModulesEnd) return;
  if (mapped_text_ == 0 || start < mapped_text_) mapped_text_ = start;
}

void KaslrRemap::see_code(std::uint64_t address) {
  if (address >= kModules && address < kModulesEnd) lowest_module_ = std::min(lowest_module_, address);
  if (address >= kImages && address < kModules) lowest_in_image_ = std::min(lowest_in_image_, address);
}

std::uint64_t KaslrRemap::text() const {
  const std::uint64_t start = mapped_text_ != 0 ? mapped_text_ : lowest_in_image_;
  return start == std::numeric_limits<std::uint64_t>::max() ? 0 : start & ~(kImageStep - 1);
}

std::optional<std::uint64_t> KaslrRemap::place_of(std::uint64_t address) const {
  if (address < kHalf) return std::nullopt;
  const std::uint64_t from = text();
  if (address >= kModules && address < kModulesEnd) {
    const std::uint64_t first = lowest_module_ & ~(kPage - 1);
    if (lowest_module_ == std::numeric_limits<std::uint64_t>::max() || address < first) return std::nullopt;
    return address - first + kModules;
  }
  if (from == 0) return std::nullopt;
  if (from >= kImages) {
    if (address < from || address >= kModules) return std::nullopt;
    return std::min(address - from + kUsualText, kModules - 1);
  }
  const bool is_near = address - from < kNear || from - address < kNear;
  return is_near ? std::optional(address - from + kOtherText) : std::nullopt;
}

std::uint64_t KaslrRemap::moved(std::uint64_t address) const { return place_of(address).value_or(address); }

std::uint64_t KaslrRemap::hidden(std::uint64_t address, const Aliases& aliases) const {
  constexpr std::uint64_t kKeptBits = 0xffff'8000'0000'0000;
  if (address < kHalf) return address;
  return place_of(address).value_or((address & kKeptBits) | (aliases.of_number(address) & ~kKeptBits));
}

std::string KaslrRemap::hidden_in(std::string_view text, const Aliases& aliases) const {
  constexpr std::size_t kAll = 16;  // digits
  std::string changed;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_of(kHexDigits), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kHexDigits, begin), text.size());
    const std::string_view digits = text.substr(begin, end - begin);
    std::uint64_t number = 0;
    changed += text.substr(0, begin);
    if (digits.size() == kAll) std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    changed += number >= kHalf ? fmt::format("{:016x}", hidden(number, aliases)) : std::string(digits);
    text.remove_prefix(end);
  }
  return changed;
}

namespace {

struct WayRow {
  How usual;
  bool can_drop, can_hash;
};

// The default of each class, and whether it can be dropped and hashed, in the order of enum Content.
constexpr WayRow kWays[] = {
    {How::Drop, true, true},    // cmdline
    {How::Drop, true, true},    // host
    {How::Last, false, true},   // paths: they distinguish modules
    {How::Hash, true, true},    // comm
    {How::Hash, true, true},    // containers
    {How::Hash, true, true},    // payload
    {How::Drop, true, false},   // stacks
    {How::Drop, true, false},   // registers
    {How::Drop, true, false},   // addresses
    {How::Move, false, false},  // kernel
    {How::Drop, true, false},   // time
    {How::Drop, true, false},   // traces
};
static_assert(std::size(kWays) == format::kContentCount);

std::string known_classes() {
  std::string known;
  for (const format::ContentRow& row : format::kContents) known += std::string(row.name) + ", ";
  return known + "all";
}

}  // namespace

std::string_view state_of(How how) {
  // In the order of enum How.
  constexpr std::string_view kStates[] = {format::kAsRecorded, "dropped", "hashed", "last part", "moved"};
  return kStates[static_cast<std::size_t>(how)];
}

Redaction::Redaction() { std::ranges::transform(kWays, how_.begin(), &WayRow::usual); }

PathRule Redaction::path_rule() const {
  if (hides(Content::Paths)) return how_of(Content::Paths) == How::Last ? PathRule::Last : PathRule::Hash;
  return hides(Content::Host) ? PathRule::Users : PathRule::Keep;
}

Result<> Redaction::set(std::string_view option, std::string_view classes, How how, bool is_usual) {
  const std::vector<std::string> names = parse_name_list(classes);
  if (names.empty()) return use_error(std::string(option) + ": name classes, or all");
  const auto can = [&](const WayRow& way) {
    return (how != How::Drop || way.can_drop) && (how != How::Hash || way.can_hash);
  };
  for (const std::string& name : names) {
    if (name == "all") {
      for (std::size_t i = 0; i < how_.size(); ++i)
        if (is_usual || can(kWays[i])) how_[i] = is_usual ? kWays[i].usual : how;
      continue;
    }
    const auto content = format::find_content(name);
    if (!content)
      return use_error(
          fmt::format("{}: there is no class '{}'; there are {}", option, name, known_classes()));
    const auto number = static_cast<std::size_t>(*content);
    if (!is_usual && !can(kWays[number]))
      return use_error(fmt::format("{}: {} cannot be {}; --hide {} makes it {}", option, name, state_of(how),
                                   name, state_of(kWays[number].usual)));
    how_[number] = is_usual ? kWays[number].usual : how;
  }
  return Done{};
}

Result<> Redaction::keep(std::string_view classes) { return set("--keep", classes, How::Keep, false); }
Result<> Redaction::hide(std::string_view classes) { return set("--hide", classes, How::Keep, true); }
Result<> Redaction::drop(std::string_view classes) { return set("--drop", classes, How::Drop, false); }
Result<> Redaction::hash(std::string_view classes) { return set("--hash", classes, How::Hash, false); }

std::string Redaction::table() {
  std::string table;
  for (const format::ContentRow& row : format::kContents) {
    const WayRow& way = kWays[static_cast<std::size_t>(row.content)];
    std::string_view other;
    if (way.usual != How::Hash && way.can_hash) other = " (or hashed)";
    if (way.usual != How::Drop && way.can_drop) other = " (or dropped)";
    table += fmt::format("  {:<11} {:<22} {}\n", row.name,
                         std::string(state_of(way.usual)) + std::string(other), row.what);
  }
  return table;
}

void Census::see_path(std::string_view path) {
  const bool is_file = path.starts_with('/') && !path.starts_with("//");
  if (!is_file || !paths_.emplace(path).second) return;
  if (user_in(path)) ++users_;
  if (path_example_.empty() || (!user_in(path_example_) && user_in(path))) path_example_ = path;
}

void Census::see_pack(const format::Features& features) {
  const auto pack = format::parse_symbol_pack(features.symbol_pack);
  if (!pack) return;
  for (const format::PackedModule& module : pack->modules) {
    see_path(pack->texts[module.path]);
    const auto kind = static_cast<symbolize::ModuleKind>(module.kind);
    const bool is_kernel = kind == symbolize::ModuleKind::Kernel ||
                           kind == symbolize::ModuleKind::KernelModule || kind == symbolize::ModuleKind::Bpf;
    for (const format::PackedAddress& address : module.addresses) {
      if (is_kernel) kernel_.see_code(address.address);
      if (address.file != 0) source_files_.emplace(pack->texts[address.file]);
    }
    for (const format::PackedSymbol& symbol : module.symbols)
      if (is_kernel) kernel_.see_code(symbol.start);
    for (const format::PackedFunction& function : module.functions)
      if (function.call_file != 0) source_files_.emplace(pack->texts[function.call_file]);
  }
}

void Census::see_head(const format::EventSet& events, const format::Features& features) {
  const format::Environment& environment = features.environment;
  words_ = environment.command_line.size() + (features.attachment("processes") != nullptr ? 1 : 0);
  hosts_ = environment.hostname ? 1 : 0;
  if (environment.hostname) host_example_ = *environment.hostname;
  for (const format::BuildIdEntry& entry : environment.build_ids) see_path(entry.filename);
  if (!features.symbol_pack.empty()) see_pack(features);
  clocks_ = environment.clock_data ? 1 : 0;
  is_wall_clock_ = std::ranges::any_of(events, [](const format::Event& event) {
    return event.attr.has(abi::kUseClockid) &&
           (event.attr.clockid == CLOCK_REALTIME || event.attr.clockid == CLOCK_TAI);
  });
  const format::Attachment* const list = features.attachment(format::kKallsymsAttachment);
  kernel_lists_ = (list != nullptr ? 1 : 0) + environment.bpf_programs.size();
  if (list == nullptr) return;
  const auto content = format::unpack_attachment(*list);
  if (!content) return;
  std::string_view text = format::as_text(*content);
  while (!text.empty()) {
    std::uint64_t address = 0;
    const std::string_view number = text.substr(0, 16);
    std::from_chars(number.data(), number.data() + number.size(), address, 16);
    kernel_.see_code(address);
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
}

void Census::see_sample(const format::Sample& sample, const format::EventAttr& attr) {
  const std::uint64_t type = attr.sample_type;
  bool is_kernel = false;
  const auto see = [&](std::uint64_t address) {
    if (address < kHalf || address >= abi::kContextMax) return;
    is_kernel = true;
    kernel_.see_code(address);
  };
  if (type & abi::kSampleIp) see(sample.ip);
  if (type & abi::kSampleCallchain)
    for (std::size_t i = 0; i < sample.callchain.size(); ++i) see(sample.callchain[i]);
  if (type & abi::kSampleBranchStack)
    for (std::size_t i = 0; i < sample.branch_count(); ++i) {
      see(sample.branch(i).from);
      see(sample.branch(i).to);
    }
  kernel_addresses_ += is_kernel ? 1 : 0;
  payloads_ += type & abi::kSampleRaw && !sample.raw.empty() ? 1 : 0;
  if (type & abi::kSampleStackUser) stack_bytes_ += sample.user_stack.size();
  const bool has_registers = (type & abi::kSampleRegsUser && sample.user_registers.abi != 0) ||
                             (type & abi::kSampleRegsIntr && sample.interrupt_registers.abi != 0);
  registers_ += has_registers ? 1 : 0;
  const bool has_address =
      (type & abi::kSampleAddr && sample.addr != 0) || (type & abi::kSamplePhysAddr && sample.phys_addr != 0);
  addresses_ += has_address ? 1 : 0;
  if (type & abi::kSampleAux) trace_bytes_ += sample.aux.size();
}

void Census::see(const format::RecordView& record, const format::EventSet& events) {
  if (record.type == abi::kRecordAuxtrace) trace_bytes_ += record.payload_size;
  if (record.type >= abi::kRecordUserStart) return;
  const auto event = events.event_of(record);
  if (!event) return;
  const format::EventAttr& attr = events[*event].attr;
  if (const auto time = format::record_time(record, attr); time && *time != 0)
    first_time_ = std::min(first_time_, *time);
  if (record.type == abi::kRecordSample) {
    if (const format::Sample* const sample = samples_.parse(record, attr)) see_sample(*sample, attr);
    return;
  }
  if (const auto parsed = format::parse_record(record, attr)) see_other(*parsed);
}

void Census::see_other(const format::Record& record) {
  if (const auto* comm = std::get_if<format::CommRecord>(&record); comm != nullptr && !comm->name.empty()) {
    if (comm_example_.empty()) comm_example_ = comm->name;
    comms_.emplace(comm->name);
  }
  if (const auto* mapping = std::get_if<format::MmapRecord>(&record)) {
    see_path(mapping->filename);
    const bool is_text = mapping->filename.starts_with("[kernel.kallsyms]");
    if (is_text)
      kernel_.see_text(mapping->page_offset >= kHalf ? mapping->page_offset : mapping->start);
    else
      kernel_.see_code(mapping->start);
  }
  if (const auto* symbol = std::get_if<format::KsymbolRecord>(&record)) kernel_.see_code(symbol->address);
  if (const auto* cgroup = std::get_if<format::CgroupRecord>(&record);
      cgroup != nullptr && cgroup->path.size() > 1) {
    if (container_example_.empty()) container_example_ = cgroup->path;
    containers_.emplace(cgroup->path);
  }
  if (std::holds_alternative<format::NamespacesRecord>(record)) ++namespaces_;
}

std::array<Census::Count, format::kContentCount> Census::counts() const {
  std::array<Count, format::kContentCount> counts;
  const auto set = [&](Content content, std::uint64_t number, std::string_view noun, std::string example = {},
                       std::string_view explained = {}) {
    counts[static_cast<std::size_t>(content)] = {
        number, fmt::format("{}{}", cli::noun_after(number, noun), explained), std::move(example)};
  };
  set(Content::CommandLine, words_, "word");
  set(Content::Host, hosts_ + users_, "name", host_example_, " (of the host, of users in paths)");
  set(Content::Paths, paths_.size() + source_files_.size(), "file", path_example_);
  set(Content::Comm, comms_.size(), "name", comm_example_);
  set(Content::Containers, containers_.size() + namespaces_, "name", container_example_,
      " (cgroups, namespaces of threads)");
  set(Content::Payload, payloads_, "sample");
  set(Content::Stacks, stack_bytes_, "byte");
  set(Content::Registers, registers_, "sample");
  set(Content::Addresses, addresses_, "sample");
  set(Content::Kernel, kernel_addresses_ + kernel_lists_, "place", {},
      " (samples, lists of symbols, BPF programs)");
  set(Content::Time, clocks_ + (is_wall_clock_ ? 1 : 0), "clock");
  set(Content::Traces, trace_bytes_, "byte");
  return counts;
}

std::uint64_t Census::time_shift() const {
  const bool is_known = first_time_ != std::numeric_limits<std::uint64_t>::max();
  if (!is_wall_clock_ || !is_known || first_time_ <= kNanosecondsInSecond) return 0;
  return first_time_ - kNanosecondsInSecond;
}

}  // namespace tacho::report
