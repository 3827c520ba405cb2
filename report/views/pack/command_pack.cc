#include "report/views/pack/command_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "format/attachment.h"
#include "report/command.h"
#include "report/views/pack/gather.h"
#include "report/views/pack/rewrite.h"

namespace tacho::report {
namespace {

constexpr std::string_view kDescription =
    "Puts into a capture what its addresses are called, so that it can be read on any machine without the "
    "files "
    "of the host: for every address that was hit, and only for those (samples, call chains, branches, data "
    "addresses; of programs, libraries, the kernel and its modules, and code made at run time) the function, "
    "the "
    "calls inlined there, and the file and line. Run it where the capture was recorded. Samples stay as they "
    "are, "
    "and perf reads the file as before; captures of perf are packed as well.";

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho pack perf.data\n"
    "  tacho pack perf.data -o packed.data --level names\n\n";

struct Options {
  ReadingOptions reading;
  std::string output;
  format::PackLevel level = format::PackLevel::Inlines;
  bool keeps_kallsyms = false;
  bool is_quiet = false;
};

Result<> set_level(std::string_view text, format::PackLevel& level) {
  if (text != "names" && text != "inlines")
    return use_error("--level: '" + std::string(text) + "' is no level; it is names or inlines");
  level = text == "names" ? format::PackLevel::Names : format::PackLevel::Inlines;
  return Done{};
}

Result<> set_kallsyms(std::string_view text, bool& keeps) {
  if (text != "all" && text != "hit")
    return use_error("--kallsyms: '" + std::string(text) + "' is not known; it is hit or all");
  keeps = text == "all";
  return Done{};
}

// Rows about symbols that make sense here: where files lie, and not how names are shown.
void add_file_options(std::vector<cli::Option>& rows, ReadingOptions& reading) {
  std::vector<cli::Option> all;
  add_reading_options(all, reading);
  constexpr std::string_view kTaken[] = {"--symfs",        "-k,--vmlinux",  "--buildid-dir", "--debuginfod",
                                         "--perf-map-dir", "--jitdump-dir", "--inflate-all", "-f,--force"};
  for (cli::Option& row : all)
    if (std::ranges::find(kTaken, row.names) != std::end(kTaken)) rows.push_back(std::move(row));
}

cli::CommandLine describe(Options& options) {
  auto line = command_line("pack", std::string(kDescription));
  line.synopsis = "FILE [-o OUT] [options]";
  auto& rows = line.options;
  rows.push_back(cli::text("-i,--input", "FILE", "the capture, as FILE alone (default: perf.data)",
                           options.reading.session.input));
  rows.push_back(
      cli::text("-o,--output", "OUT",
                "write the packed capture there (an existing file is kept as OUT.old); default: in place "
                "of FILE, at once when it is whole",
                options.output));
  rows.push_back({"--level", cli::Takes::Value, "LEVEL",
                  "names: functions; inlines (default): and inlined calls, files and lines",
                  [&options](std::string_view text) { return set_level(text, options.level); }});
  rows.push_back(
      {"--kallsyms", cli::Takes::Value, "WHICH",
       "hit (default): of the kernel's list of symbols that tacho record puts into captures, what was hit "
       "stays, in the pack; all: it stays whole. It does as well where tracepoints print kernel functions "
       "by their addresses",
       [&options](std::string_view text) { return set_kallsyms(text, options.keeps_kallsyms); }});
  rows.push_back(flag("-q,--quiet", "say nothing but what went wrong", options.is_quiet));
  add_file_options(rows, options.reading);
  line.words = [&options](const std::vector<std::string>& words) -> Result<> {
    if (words.size() > 1) return use_error("pack takes one capture, and '" + words[1] + "' is a second one");
    if (!words.empty()) options.reading.session.input = words.front();
    return Done{};
  };
  line.epilog = std::string(kExamples) + line.epilog;
  return line;
}

// Conversions of tracepoints' print formats that show a kernel address as a function: what they are given is
// in the payload, and only printing it tells.
bool prints_functions(const format::TracingData& tracing) {
  return std::ranges::any_of(tracing.formats, [](const format::TracepointFormat& format) {
    for (std::size_t at = 0; (at = format.text.find("%p", at)) != std::string::npos; ++at)
      if (at + 2 < format.text.size() &&
          std::string_view("sSfFB").find(format.text[at + 2]) != std::string_view::npos)
        return true;
    return false;
  });
}

// Everything that was in the kernel's list and was hit is in the pack now.
void drop_kallsyms(format::Features& features) {
  std::erase_if(features.attachments, [](const format::Attachment& attachment) {
    return attachment.name == format::kKallsymsAttachment;
  });
  format::drop_section(features, format::abi::kFeatureAttachments);
}

// Readers refuse a section that would take far more memory than it is large, and addresses at equal distances
// become almost nothing: what nobody could read must not take the place of names that were read before.
Result<> check_readable(format::Bytes section, const std::string& input) {
  const auto back = format::parse_symbol_pack(section);
  if (back) return Done{};
  return Error{printable(input) + ": is not packed and stays as it is: readers would refuse the pack, it " +
               back.error().what};
}

Result<cli::ExitStatus> run(Options& options) {
  SessionOptions& session_options = options.reading.session;
  const std::string& input = session_options.input;
  if (options.output == "-") return use_error("-o -: a packed capture is a file; name it");
  if (auto checked = check_rewritable(input); !checked) return std::move(checked.error());
  set_for_gathering(session_options);
  auto session = Session::open(session_options);
  if (!session) return std::move(session.error());
  GatheredSymbols gathered = gather_symbols(*session, options.level);
  const auto section = format::write_symbol_pack_section(gathered.pack);
  if (!section) return section.error();
  if (auto checked = check_readable(*section, input); !checked) return std::move(checked.error());
  const bool keeps_kallsyms = options.keeps_kallsyms || prints_functions(session->features().tracing);
  RewriteOptions rewriting{input, options.output};
  auto written = rewrite(rewriting, [&](format::Features& features) -> Result<> {
    features.symbol_pack = *section;
    format::drop_section(features, format::abi::kFeatureSymbolPack);
    if (!keeps_kallsyms) drop_kallsyms(features);
    return Done{};
  });
  if (!written) return std::move(written.error());
  if (!options.is_quiet)
    std::fprintf(
        stderr, "%s\n",
        fmt::format("tacho pack: {}: {} of {} addresses have names, in {} modules; {} bytes were added",
                    printable(options.output.empty() ? input : options.output), gathered.named,
                    gathered.addresses, gathered.pack.modules.size(), section->size())
            .c_str());
  session->report_missing_symbols();
  return tell_findings(session->diagnostics(), input);
}

}  // namespace

Result<cli::ExitStatus> run_pack(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options] { return run(options); });
}

}  // namespace tacho::report
