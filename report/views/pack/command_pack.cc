#include "report/views/pack/command_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/message_text.h"
#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/output.h"
#include "format/container/capture_reader.h"
#include "format/container/capture_writer.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/decode/bpf_instructions.h"
#include "report/output/output_file.h"
#include "report/output/replaced_file.h"
#include "report/output/terminal.h"
#include "report/pinned_files_option.h"
#include "report/query/code_gatherer.h"
#include "report/query/gather.h"
#include "sandbox/process.h"
#include "symbolize/elf/module_files.h"
#include "symbolize/elf/stripped_copy.h"
#include "symbolize/files/archive.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/files/decompress.h"
#include "symbolize/files/pinned_files.h"
#include "symbolize/files/source_files.h"
#include "symbolize/other_packs.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostOfOne = std::uint64_t{128} << 20, kMostOfAll = std::uint64_t{512} << 20,
                        kMostPacked = std::uint64_t{128} << 20;
// A copy is not tried when less space than this (compressed bytes) is left.
constexpr std::uint64_t kLeast = std::uint64_t{1} << 12;
constexpr std::size_t kMostListed = 20;   // omissions that are listed
constexpr std::size_t kMostMisfits = 50;  // files that did not fit when they were compressed

bool is_file_copy(const format::Attachment& attachment) {
  return attachment.name.starts_with(symbolize::kAttachedFile);
}

bool is_source(const format::Attachment& attachment) {
  return attachment.name.starts_with(symbolize::kAttachedSource);
}

bool is_jitdump(const format::Attachment& attachment) {
  return attachment.name.starts_with(symbolize::kAttachedJitdump);
}

// `from` minus `what`, at least 0.
std::uint64_t reduced(std::uint64_t from, std::uint64_t what) { return from - std::min(from, what); }

using Modules = std::vector<const format::PackedModule*>;

Modules programs_and_libraries(const format::SymbolPack& pack) {
  Modules modules;
  for (const format::PackedModule& module : pack.modules)
    if (module.kind == static_cast<std::uint8_t>(symbolize::ModuleKind::User) &&
        pack.texts[module.path].starts_with('/'))
      modules.push_back(&module);
  std::ranges::stable_sort(modules, std::greater(),
                           [](const format::PackedModule* module) { return module->addresses.size(); });
  return modules;
}

// The space left, in uncompressed and compressed bytes. Sizes of copies in the capture are not trusted.
class Room {
 public:
  void take(const format::Attachment& copy) {
    content_ = reduced(content_, copy.raw_size);
    packed_ = reduced(packed_, copy.packed.size());
  }
  // The space left if `old` (may be null) is removed.
  Room without(const format::Attachment* old) const {
    Room room = *this;
    if (old == nullptr) return room;
    room.content_ = std::min(kMostOfAll, content_ + std::min(kMostOfAll, old->raw_size));
    room.packed_ = std::min<std::uint64_t>(kMostPacked, packed_ + old->packed.size());
    return room;
  }
  std::uint64_t content() const { return content_; }
  std::uint64_t packed() const { return packed_; }
  bool is_none() const { return content_ < kLeast || packed_ < kLeast; }

 private:
  std::uint64_t content_ = kMostOfAll, packed_ = kMostPacked;
};

class FileCopier {
 public:
  FileCopier(std::span<const format::Attachment> before, const symbolize::SymbolOptions& options,
             symbolize::FileAccess& access)
      : files_(symbolize::DebugFiles(options.symfs, options.build_id_dir, options.pinned), nullptr, nullptr),
        access_(access) {
    for (const format::Attachment& copy : before) {
      if (!is_file_copy(copy)) continue;
      old_.emplace(copy.name, &copy);
      room_.take(copy);
    }
  }
  void add(const std::string& path, const format::BuildId& id) {
    std::string name = symbolize::attached_file_name(path, id);
    if (!known_.insert(name).second) return;
    const auto old = old_.find(name);
    const format::Attachment* const before = old == old_.end() ? nullptr : old->second;
    const Room room = room_.without(before);
    auto made = copy(path, id, std::move(name), room);
    if (made) {
      room_ = room;
      room_.take(*made);
      copies_.attachments.push_back(std::move(*made));
    } else if (before == nullptr) {
      omit(path + ": is not copied: " + made.error().what);
    }
  }
  FileCopies take() { return std::move(copies_); }

 private:
  static Error no_room() { return Error{"there is no room for it"}; }
  void omit(std::string line) {
    if (copies_.omissions.size() < kMostListed)
      copies_.omissions.push_back(std::move(line));
    else
      ++copies_.more_omissions;
  }
  Result<format::Attachment> copy(const std::string& path, const format::BuildId& id, std::string name,
                                  const Room& room) {
    if (room.is_none() || misfits_ == kMostMisfits || copies_.attachments.size() == kMostCopies)
      return no_room();
    const symbolize::ScopedRead reading(&access_, path);
    if (reading.is_refused()) return Error{access_.refusal(path)};
    const auto file = files_.file({.path = path, .short_name = path, .build_id = id});
    if (!file) return file.error();
    const auto content = symbolize::stripped_copy(*file, std::min(kMostOfOne, room.content()));
    if (!content) return content.error();
    auto packed = format::pack_attachment(std::move(name), path, *content);
    if (!packed) return packed;
    if (packed->packed.size() > room.packed()) {
      ++misfits_;
      return no_room();
    }
    if (auto readable = symbolize::check_attached_size(*packed); !readable)
      return std::move(readable.error());
    return packed;
  }

  symbolize::ModuleFiles files_;
  symbolize::FileAccess& access_;
  std::map<std::string_view, const format::Attachment*> old_;  // by name
  std::set<std::string> known_;
  Room room_;
  std::size_t misfits_ = 0;
  FileCopies copies_;
};

}  // namespace

FileCopies copy_files(const format::SymbolPack& pack, std::span<const format::Attachment> before,
                      const symbolize::SymbolOptions& options, symbolize::FileAccess& access) {
  FileCopier copier(before, options, access);
  for (const format::PackedModule* const module : programs_and_libraries(pack))
    copier.add(std::string(pack.texts[module->path]), module->build_id);
  return copier.take();
}

namespace {

constexpr std::uint64_t kMostOfOneSource = std::uint64_t{4} << 20,
                        kMostOfAllSources = std::uint64_t{64} << 20;  // bytes
constexpr std::size_t kMostFiles = 4096;

// Text has no zeros.
bool is_text(format::Bytes bytes) { return std::ranges::find(bytes, std::byte{}) == bytes.end(); }

}  // namespace

SourceCopies copy_sources(const NamedSources& sources, Resolver& resolver) {
  SourceCopies copies;
  std::uint64_t room = kMostOfAllSources;
  for (const auto& [path, module] : sources) {
    if (!path.starts_with('/')) continue;
    const auto content = resolver.source_file(module, path);
    if (!content || !is_text(*content)) continue;
    if (content->size() > std::min(room, kMostOfOneSource) || copies.attachments.size() == kMostFiles) {
      ++copies.left_out;
      continue;
    }
    auto packed = format::pack_attachment(std::string(symbolize::kAttachedSource) + path, path, *content);
    if (!packed || !symbolize::check_attached_size(*packed)) continue;
    room -= content->size();
    copies.attachments.push_back(std::move(*packed));
  }
  return copies;
}

namespace {

namespace abi = format::abi;
using format::CaptureReader;

Result<> check(const CaptureReader& reader, const format::Diagnostics& diagnostics,
               const std::string& input) {
  const format::CaptureLayout& layout = reader.layout();
  const std::string remedy =
      "; 'tacho convert -i " + cli::shell_word(input) + " -o FILE' makes one that can be";
  if (layout.is_pipe)
    return Error{input + ": has the form of a pipe, to which nothing can be added" + remedy};
  if (layout.order != std::endian::native)
    return Error{input + ": was recorded in the other byte order and is not rewritten" + remedy};
  return check_whole(reader, diagnostics, input, "rewritten");
}

// u64 count, then {u64 offset in the file, u64 size} of each AUXTRACE record: they move with the data.
void move_aux_index(format::Features& features, std::uint64_t moved_by, format::Features& late) {
  const auto index = std::ranges::find(features.raw, abi::kFeatureAuxtrace, &format::RawSection::feature);
  if (index == features.raw.end()) return;
  format::Cursor in(index->bytes);
  format::ByteWriter out;
  out.u64(in.u64());
  while (in.left() >= 2 * sizeof(std::uint64_t)) {
    const std::uint64_t offset = in.u64();
    out.u64(offset + moved_by).u64(in.u64());
  }
  format::keep_section(late, abi::kFeatureAuxtrace, out.view());
}

// The file that is replaced: the target of a symbolic link.
std::string real_path(const std::string& path) {
  std::error_code ignored;
  const auto real = std::filesystem::canonical(path, ignored);
  return real.empty() ? path : real.string();
}

// Opens the capture and checks that it can be rewritten; the error says what to do.
Result<> check_rewritable(const std::string& input) {
  if (input == "-") return Error{"standard input cannot be rewritten; name a file"};
  format::Diagnostics diagnostics;
  if (auto checked = check_no_folder(input, "rewritten"); !checked) return checked;
  const auto reader = CaptureReader::open(input, diagnostics);
  if (!reader) return reader.error();
  return check(*reader, diagnostics, input);
}

// Rewrites a capture with the feature sections that `change` makes; its records stay the same, byte for byte.
// A section that `change` drops (format::drop_section) is encoded again from its values. `output` (empty: the
// input is replaced) gets its name when it is complete; an old file of that name is kept as NAME.old. An
// error when the input is not as it was `before`.
Result<> rewrite(const std::string& input, const FileState& before, const std::string& output_path,
                 const std::function<Result<>(format::Features&)>& change) {
  format::Diagnostics diagnostics;
  format::ReadOptions reading;
  reading.keep_all = true;
  auto source = format::open_input(input);
  if (!source) return std::move(source.error());
  auto reader = CaptureReader::open(input, diagnostics, reading);
  if (!reader) return std::move(reader.error());
  if (auto checked = check(*reader, diagnostics, input); !checked) return checked;
  format::Features features = reader->take_features();
  if (auto changed = change(features); !changed) return changed;

  const bool is_in_place = output_path.empty();
  const std::string target = is_in_place ? real_path(input) : output_path;
  auto output = format::WholeOutput::create(
      target, is_in_place ? format::WholeOutput::Old::Replaced : format::WholeOutput::Old::Kept);
  if (!output) return std::move(output.error());
  auto file = output->duplicate();
  if (!file) return std::move(file.error());
  format::Features late;
  const format::CaptureLayout& layout = reader->layout();
  format::WriteOptions writing;
  writing.as_given = writing.copies_data = true;
  auto writer = format::CaptureWriter::create(std::move(*file), reader->events(), features, writing);
  if (!writer) return std::move(writer.error()).in(target);
  move_aux_index(features, writer->next_offset() - layout.data_offset, late);
  if (auto copied = writer->copy_data(source->get(), layout.data_offset, layout.data_size); !copied)
    return std::move(copied.error()).in(target);
  if (auto closed = writer->close_file(late); !closed) return std::move(closed.error()).in(target);
  if (auto same = before.check_same(input); !same) return same;
  return output->finish();
}

constexpr std::string_view kDescription =
    "Embeds symbols into a capture, so that it can be read on any machine without the files of the "
    "recording host: for each address in samples, call chains, branches and data addresses its function, "
    "the inlined calls there, and its file and line; of programs, libraries, the kernel, its modules, and "
    "code made at run time. Run it on the recording host. Samples stay the same, and perf can read the "
    "file; perf's captures can be packed too. A sandboxed process reads the files: it can neither write nor "
    "connect (with --debuginfod it can do both). If it crashes at a damaged file, that file's symbols are "
    "left out.";

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho pack perf.data\n"
    "  tacho pack perf.data -o packed.data --level names\n"
    "  tacho pack perf.data --from monday.data --from tuesday.data\n"
    "  tacho pack perf.data --from perf.data.tar.bz2\n\n";

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of names; more than any reader takes

struct Options {
  ReadingOptions reading;
  std::string output;
  std::vector<std::string> others;         // --from: captures whose packs have names too
  std::optional<format::PackLevel> level;  // none: inlines, or what the capture's pack has already
  bool copies_files = false;
  bool keeps_kallsyms = false;
  bool is_quiet = false;
  bool is_brief = false;
  std::optional<symbolize::PinnedFiles> pinned;  // --pinned-files
};

Result<> set_level(std::string_view text, Options& options) {
  using format::PackLevel;
  constexpr std::pair<std::string_view, PackLevel> kLevels[] = {{"names", PackLevel::Names},
                                                                {"inlines", PackLevel::Inlines},
                                                                {"code", PackLevel::Code},
                                                                {"elf", PackLevel::Code}};
  const auto level = std::ranges::find(kLevels, text, &std::pair<std::string_view, PackLevel>::first);
  if (level == std::end(kLevels))
    return use_error("--level: '" + std::string(text) + "' is no level; it is names, inlines, code or elf");
  options.level = level->second;
  options.copies_files = text == "elf";
  return Done{};
}

Result<> set_kallsyms(std::string_view text, bool& keeps) {
  if (text != "all" && text != "hit")
    return use_error("--kallsyms: '" + std::string(text) + "' is not known; it is hit or all");
  keeps = text == "all";
  return Done{};
}

// Options about the files of symbols; options about how names are shown are left out.
void add_file_options(std::vector<cli::Option>& rows, ReadingOptions& reading) {
  std::vector<cli::Option> all;
  add_reading_options(all, reading);
  constexpr std::string_view kTaken[] = {"--symfs",         "-k,--vmlinux", "--buildid-dir",  "--debuginfod",
                                         "--max-file-time", "--skip-file",  "--perf-map-dir", "--jitdump-dir",
                                         "--inflate-all",   "-f,--force"};
  for (cli::Option& row : all)
    if (std::ranges::find(kTaken, row.names) != std::end(kTaken)) rows.push_back(std::move(row));
}

cli::CommandLine describe(Options& options) {
  auto line = command_line("pack", std::string(kDescription));
  line.synopsis = "FILE [-o OUT] [options]";
  auto& rows = line.options;
  rows.push_back(cli::text("-i,--input", "FILE", "the capture, as FILE alone (default: perf.data)",
                           options.reading.session.input));
  rows.push_back(cli::text(
      "-o,--output", "OUT",
      "write the packed capture to OUT (an existing file is kept as OUT.old); default: replace FILE "
      "when the packed capture is complete",
      options.output));
  rows.push_back(
      {"--level", cli::Takes::Value, "LEVEL",
       "what is embedded. names: functions; inlines (default): also inlined calls, files and lines; code: "
       "also the sampled functions' instructions, for annotate and script -F +insn (up to 256 KB of a "
       "function, else 64 bytes of it), and their source files on this host (64 MB at most); elf: also "
       "copies of programs and libraries without their debug sections, which unwind copied stacks elsewhere "
       "(128 MB at most, with earlier copies, which stay). Without the option, the level of the last pack",
       [&options](std::string_view text) { return set_level(text, options); }});
  rows.push_back(
      {"--kallsyms", cli::Takes::Value, "WHICH",
       "what stays of the /proc/kallsyms that tacho record attached: hit (default): the symbols of sampled "
       "addresses; all: the whole list. The whole list stays too if tracepoints print kernel functions by "
       "address",
       [&options](std::string_view text) { return set_kallsyms(text, options.keeps_kallsyms); }});
  rows.push_back(
      {"--from", cli::Takes::Value, "OTHER",
       "for programs and libraries that are not on this host: take the symbols from OTHER, a packed capture "
       "with the same build ids, or the files from an archive of perf archive; may be given several times",
       [&options](std::string_view text) -> Result<> {
         options.others.emplace_back(text);
         return Done{};
       }});
  rows.push_back(pinned_files_option(options.pinned));
  rows.push_back(flag("-q,--quiet", "print errors only", options.is_quiet));
  rows.push_back(flag("--brief",
                      "print one line if symbols are missing that could be had, else nothing, as tacho "
                      "record does at its end",
                      options.is_brief));
  add_file_options(rows, options.reading);
  rows.push_back(kcore_option(options.reading));
  options.reading.session.input = "perf.data";  // a pipe cannot be rewritten
  line.epilog = std::string(kExamples) + line.epilog;
  return line;
}

// Whether a tracepoint's print format shows a kernel address as a function (%pS). Such addresses are in
// payloads, which are not searched for addresses to pack.
bool prints_functions(const format::TracingData& tracing) {
  return std::ranges::any_of(tracing.formats, [](const format::TracepointFormat& format) {
    for (std::size_t at = 0; (at = format.text.find("%p", at)) != std::string::npos; ++at)
      if (at + 2 < format.text.size() &&
          std::string_view("sSfFB").find(format.text[at + 2]) != std::string_view::npos)
        return true;
    return false;
  });
}

// kallsyms can be dropped: the symbols that were hit are in the pack now.
void drop_kallsyms(format::Features& features) {
  std::erase_if(features.attachments, [](const format::Attachment& attachment) {
    return attachment.name == format::kKallsymsAttachment;
  });
  format::drop_section(features, format::abi::kFeatureAttachments);
}

// Attaches the functions of jitdumps that were hit; `lines` gets a line for each jitdump that is incomplete.
void add_jitdumps(GatheredSymbols& gathered, std::vector<format::Attachment>& to,
                  std::vector<std::string>& lines) {
  constexpr const char* kWhy = "readers would refuse as many bytes for their size in the capture";
  for (auto& [path, attached] : gathered.jitdumps) {
    if (!attached) {
      lines.push_back("tacho: " + path + ": is not packed: " + attached.error().what);
      continue;
    }
    if (attached->lacks_lines)
      lines.push_back(fmt::format("tacho: {}: source lines of its functions are not packed: {}", path, kWhy));
    if (attached->left_out != 0)
      lines.push_back(
          fmt::format("tacho: {}: the last {} functions and moves that were hit are not packed: {}", path,
                      attached->left_out, kWhy));
    to.push_back(std::move(attached->attachment));
  }
}

// Earlier copies stay unless there is a new one, or a lower level was given.
void put_copies(const Options& options, std::vector<format::Attachment>& copies, format::Features& features) {
  const auto is_replaced = [&](const format::Attachment& attachment) {
    if (std::ranges::find(copies, attachment.name, &format::Attachment::name) != copies.end()) return true;
    if (!options.level) return false;
    if (is_source(attachment)) return *options.level < format::PackLevel::Code;
    return is_file_copy(attachment) && !options.copies_files;
  };
  const bool is_changed = std::erase_if(features.attachments, is_replaced) > 0 || !copies.empty();
  if (!is_changed) return;
  std::ranges::move(copies, std::back_inserter(features.attachments));
  format::drop_section(features, format::abi::kFeatureAttachments);
}

// Checks that readers accept the pack, before it replaces an earlier one. They refuse a section whose content
// is far larger than the section, as it is if few files could be read: addresses without names, at equal
// distances, compress to almost nothing.
Result<> check_readable(format::Bytes section, const std::string& input) {
  const auto back = format::parse_symbol_pack(section);
  if (back) return Done{};
  return Error{printable(input) + ": is not packed and stays as it is: readers would refuse the pack, it " +
               back.error().what};
}

constexpr std::uint64_t kMostAttached = 2 * kMostCopies;  // with jitdumps
// At most a thousand modules get lines, mostly one each.
constexpr std::uint64_t kMostLines = std::uint64_t{1} << 14;

// The result of the sandboxed child.
struct Report {
  std::uint64_t addresses = 0, named = 0, modules = 0;
  struct Nameless {
    std::uint64_t addresses = 0, files = 0, most = 0;
    std::string where;  // the file with most of them
  } nameless;           // GatheredSymbols::nameless
  bool is_incomplete = false;
  std::vector<std::string> lines;
  std::vector<format::Attachment> copies;
  format::Bytes section;
  std::size_t added = 0;  // bytes of the section and of all attachments
};

enum class Outcome : std::uint8_t { Packed, Failed };

void put_text(format::ByteWriter& out, std::string_view text) {
  out.u64(text.size()).bytes(std::as_bytes(std::span(text)));
}

std::string take_text(format::Cursor& in) { return std::string(format::as_text(in.take_bytes(in.u64()))); }

std::vector<std::byte> encoded(const Error& error) {
  format::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(Outcome::Failed)).u8(static_cast<std::uint8_t>(error.fault));
  put_text(out, error.what);
  return std::move(out).take_bytes();
}

std::string_view name_of(format::PackLevel level) {
  return level == format::PackLevel::Code ? "code" : level == format::PackLevel::Names ? "names" : "inlines";
}

// The level of the capture's pack; Names when there is none.
format::PackLevel packed_level(const format::Features& features) {
  if (features.symbol_pack.empty()) return format::PackLevel::Names;
  const auto pack = format::parse_symbol_pack(features.symbol_pack);
  return pack ? pack->level : format::PackLevel::Names;
}

// The symbols from other captures and archives (--from).
struct Others {
  symbolize::OtherPacks packs;
  symbolize::PinnedFiles pinned;     // also those of --pinned-files
  std::vector<std::string> ignored;  // lines about files of archives that were ignored
};

// Adds the files of an archive, which are found by their build ids.
Result<> read_archive(const std::string& name, Others& others) {
  auto archive = symbolize::read_archive(name);
  if (!archive) return std::move(archive.error());
  for (symbolize::Archive::File& one : archive->files)
    others.pinned.add_file(std::move(one.file), one.build_id);
  for (const std::string& line : archive->ignored)
    others.ignored.push_back("tacho: --from " + name + ": " + line);
  return Done{};
}

// Reads the pack of another capture (but not its records), or an archive.
Result<> read_other(const Options& options, const std::string& name, Others& others) {
  if (symbolize::is_archive(name)) return read_archive(name, others);
  format::Diagnostics ignored;
  const auto capture = format::CaptureReader::open(name, ignored, options.reading.session.capture);
  if (!capture) return Error(capture.error());
  return others.packs.add_pack(printable(name), capture->features().symbol_pack);
}

Result<> read_others(const Options& options, symbolize::FileAccess& access, Others& others) {
  for (const std::string& name : options.others) {
    if (!access.refusal(name).empty()) continue;  // `access` reports it
    access.set_current(name);
    auto read = read_other(options, name, others);
    access.set_current({});
    if (!read) return std::move(read.error()).in("--from");
  }
  return Done{};
}

void put_nameless(format::ByteWriter& out, const std::map<std::string, std::size_t>& nameless) {
  Report::Nameless all;
  for (const auto& [where, addresses] : nameless) {
    all.addresses += addresses;
    ++all.files;
    if (addresses <= all.most) continue;
    all.most = addresses;
    all.where = where;
  }
  out.u64(all.addresses).u64(all.files).u64(all.most);
  put_text(out, all.where);
}

// Names of what BPF programs call, which are in kallsyms.
void add_bpf_calls(const format::Features& features, std::vector<format::Attachment>& attachments) {
  if (features.environment.bpf_programs.empty() ||
      features.attachment(format::kKallsymsAttachment) == nullptr)
    return;
  const std::string lines = BpfCallNames(features).lines_of_calls(features.environment);
  if (lines.empty()) return;
  if (auto packed = format::pack_attachment(std::string(kBpfCallsAttachment), "kallsyms",
                                            std::as_bytes(std::span(lines))))
    attachments.push_back(std::move(*packed));
}

// Attaches the MD5 sums of source files, with those of an earlier pack.
void attach_source_sums(symbolize::SourceSums& sums, const format::Features& features,
                        std::vector<format::Attachment>& attachments) {
  if (sums.empty()) return;
  if (const auto* const before = features.attachment(std::string(symbolize::kAttachedSums)))
    for (const auto& [path, known] : symbolize::sums_in(*before)) symbolize::add_sums(sums, path, known);
  if (auto packed = symbolize::attach_sums(sums); packed && symbolize::check_attached_size(*packed))
    attachments.push_back(std::move(*packed));
}

// Runs in the sandboxed child; returns an encoded Report or Error.
std::vector<std::byte> pack_here(Options& options, const sandbox::Child& child) {
  sandbox::SkippedFiles access(options.reading.skipped_files, &child.names);
  SessionOptions reading = options.reading.session;
  reading.symbols.access = &access;
  Others others;
  const bool has_pinned = options.pinned.has_value();
  if (has_pinned) others.pinned = std::move(*options.pinned);
  if (auto read = read_others(options, access, others); !read) return encoded(read.error());
  if (has_pinned || !options.others.empty()) reading.symbols.pinned = &others.pinned;
  if (!options.others.empty()) reading.symbols.others = &others.packs;
  const symbolize::SymbolOptions symbols = reading.symbols;
  auto session = Session::open(std::move(reading));
  if (!session) return encoded(session.error());
  const format::PackLevel before = packed_level(session->features());
  const format::PackLevel usual = std::max(before, format::PackLevel::Inlines);
  const GatherRules rules{options.level.value_or(usual), &access};
  GatheredSymbols gathered = gather_symbols(*session, rules);
  const auto section = format::write_symbol_pack_section(gathered.pack);
  if (!section) return encoded(section.error());
  SourceCopies sources = copy_sources(gathered.sources, session->resolver());
  session->report_missing_symbols();
  std::vector<std::string> lines = findings_text(session->diagnostics(), options.reading.session.input);
  std::ranges::copy(others.ignored, std::back_inserter(lines));
  if (rules.level < before)
    lines.push_back("tacho: the capture had more: what --level " + std::string(name_of(before)) +
                    " packed is left out");
  FileCopies copies;
  if (options.copies_files)
    copies = copy_files(gathered.pack, session->features().attachments, symbols, access);
  for (const std::string& omission : copies.omissions) lines.push_back("tacho: " + omission);
  if (copies.more_omissions != 0)
    lines.push_back(
        fmt::format("tacho: and {} not copied", cli::counted(copies.more_omissions, "more file")));
  if (options.level && !options.copies_files &&
      std::ranges::any_of(session->features().attachments, is_file_copy))
    lines.emplace_back("tacho: the capture had more: its copies of files (--level elf) are left out");
  std::ranges::move(sources.attachments, std::back_inserter(copies.attachments));
  attach_source_sums(gathered.source_sums, session->features(), copies.attachments);
  if (sources.left_out != 0)
    lines.push_back(
        fmt::format("tacho: {} source files are not packed: there is no room for them", sources.left_out));
  add_jitdumps(gathered, copies.attachments, lines);
  add_bpf_calls(session->features(), copies.attachments);
  for (const std::string& omission : others.packs.omissions()) lines.push_back("tacho: --from " + omission);
  format::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(Outcome::Packed))
      .u64(gathered.addresses)
      .u64(gathered.named)
      .u64(gathered.pack.modules.size());
  put_nameless(out, gathered.nameless);
  out.u8(session->diagnostics().incomplete() || !others.ignored.empty() ? 1 : 0).u64(lines.size());
  for (const std::string& line : lines) put_text(out, line);
  out.u64(copies.attachments.size());
  for (const format::Attachment& copy : copies.attachments) {
    put_text(out, copy.name);
    put_text(out, copy.origin);
    out.u64(copy.raw_size).u64(copy.packed.size()).bytes(copy.packed);
  }
  out.u64(section->size()).bytes(*section);
  return std::move(out).take_bytes();
}

Result<Report> parse_report(format::Bytes bytes) {
  format::Cursor in(bytes);
  if (in.u8() == static_cast<std::uint8_t>(Outcome::Failed)) {
    Error error;
    error.fault = in.u8() == static_cast<std::uint8_t>(Fault::Use) ? Fault::Use : Fault::Input;
    error.what = take_text(in);
    return error;
  }
  Report report;
  report.addresses = in.u64();
  report.named = in.u64();
  report.modules = in.u64();
  report.nameless.addresses = in.u64();
  report.nameless.files = in.u64();
  report.nameless.most = in.u64();
  report.nameless.where = take_text(in);
  report.is_incomplete = in.u8() != 0;
  const std::uint64_t lines = in.u64();
  if (lines > kMostLines) in.fail();
  for (std::uint64_t left = lines; left > 0 && !in.failed(); --left) report.lines.push_back(take_text(in));
  const std::uint64_t copies = in.u64();
  if (copies > kMostAttached) in.fail();
  for (std::uint64_t left = copies; left > 0 && !in.failed(); --left) {
    format::Attachment& copy = report.copies.emplace_back();
    copy.name = take_text(in);
    copy.origin = take_text(in);
    copy.raw_size = in.u64();
    const format::Bytes packed = in.take_bytes(in.u64());
    copy.packed.assign(packed.begin(), packed.end());
    if (!is_file_copy(copy) && !is_jitdump(copy) && !is_source(copy) && copy.name != kBpfCallsAttachment &&
        copy.name != symbolize::kAttachedSums)
      in.fail();
  }
  report.section = in.take_bytes(in.u64());
  report.added = report.section.size();
  for (const format::Attachment& copy : report.copies) report.added += copy.packed.size();
  if (in.failed()) return Error{"the process that reads the files gave something else"};
  return report;
}

// The closing line about addresses without names; empty: all have one.
std::string nameless_line(const Report& report, const std::string& file) {
  const auto& [addresses, files, most, where] = report.nameless;
  if (addresses == 0) return {};
  std::string text =
      fmt::format("{} of {} addresses have no name: {} in {}", addresses, report.addresses, most,
                  where.empty() ? "code made at run time, without a perf map" : printable(where));
  if (files > 1) text += fmt::format(", {} in {}", addresses - most, cli::counted(files - 1, "more file"));
  return text + "; tacho doctor " + cli::shell_word(file) + " says why";
}

void print_result(const Options& options, const Report& report, const std::vector<sandbox::Death>& deaths) {
  const std::string& file = options.output.empty() ? options.reading.session.input : options.output;
  const std::string named = fmt::format("{} of {} addresses have names, in {}", report.named,
                                        report.addresses, cli::counted(report.modules, "module"));
  if (options.is_brief && !options.is_quiet) {
    if (const std::string text = nameless_line(report, file); !text.empty())
      std::fprintf(stderr, "[ tacho record: %s ]\n", text.c_str());
  } else if (!options.is_quiet) {
    std::fprintf(stderr, "tacho pack: %s: %s; %zu bytes were added\n", printable(file).c_str(), named.c_str(),
                 report.added);
  }
  for (const sandbox::Death& death : deaths)
    std::fprintf(stderr, "tacho: %s: its names are missing: the process that read it died: %s\n",
                 printable(death.path).c_str(), death.how.c_str());
  if (options.is_brief) return;
  for (const std::string& line : report.lines) std::fprintf(stderr, "%s\n", printable(line).c_str());
}

Result<cli::ExitStatus> run(Options& options) {
  const std::string& input = options.reading.session.input;
  if (options.output == "-") return use_error("-o -: a packed capture is a file; name it");
  if (auto checked = check_rewritable(input); !checked) return std::move(checked.error());
  const auto before = FileState::of(input);
  if (!before) return before.error();
  set_for_gathering(options.reading.session);
  options.reading.session.symbols.completes_pack = true;
  const bool asks_servers = options.reading.session.symbols.debuginfod == symbolize::Servers::Asked;
  const auto policy = asks_servers             ? sandbox::Policy::Servers
                      : options.others.empty() ? sandbox::Policy::ReadFiles
                                               : sandbox::Policy::MemoryFiles;
  std::vector<int> kept = options.pinned ? options.pinned->descriptors() : std::vector<int>();
  const auto kcore = take_kernel_files(options.reading);
  if (!kcore) return kcore.error();
  if (*kcore) kept.push_back(kcore->get());
  const sandbox::FileTimes times =
      file_times(options.reading.file_seconds, options.reading.session.symbols.debuginfod);
  const auto done =
      sandbox::run_job([&options](const sandbox::Child& child) { return pack_here(options, child); }, policy,
                       {.most_bytes = kMostBytes,
                        .times = times,
                        .kept = std::move(kept),
                        .show_progress = progress_lines(),
                        .kernel_symbols = kernel_symbols_for(options.reading.session.symbols)});
  if (!done) return Error(done.error()).in(printable(input) + ": is not packed and stays as it is");
  auto report = parse_report(done->bytes);
  if (!report) return std::move(report.error());
  if (auto checked = check_readable(report->section, input); !checked) return std::move(checked.error());
  const NoStopping while_writing;
  auto written = rewrite(input, *before, options.output, [&](format::Features& features) -> Result<> {
    features.symbol_pack.assign(report->section.begin(), report->section.end());
    format::drop_section(features, format::abi::kFeatureSymbolPack);
    put_copies(options, report->copies, features);
    if (!options.keeps_kallsyms && !prints_functions(features.tracing)) drop_kallsyms(features);
    return Done{};
  });
  if (!written) return std::move(written.error());
  print_result(options, *report, done->deaths);
  if (done->is_out_of_time) std::fputs(sandbox::out_of_time(input, times).c_str(), stderr);
  const bool is_whole = !report->is_incomplete && done->deaths.empty() && !done->is_out_of_time;
  return is_whole ? cli::kWhole : cli::kIncomplete;
}

}  // namespace

Result<cli::ExitStatus> run_pack(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options] { return run(options); });
}

}  // namespace tacho::report
