#include "record/events/tracepoint.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "cli/nearest.h"
#include "format/base/file.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

// Whether the file can be opened. access(2) would ignore capabilities of users other than root.
bool exists(const std::string& path) { return faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0; }

namespace fs = std::filesystem;

constexpr const char* kPlaces[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

// Names of the folders in `directory`, in alphabetical order.
Result<std::vector<std::string>> folders_of(const std::string& directory) {
  std::error_code code;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory, code), end; !code && entry != end; entry.increment(code)) {
    if (entry->is_directory(code)) names.push_back(entry->path().filename());
  }
  if (code) {
    Error error = system_error(directory, code.value());
    if (code.value() == EACCES || code.value() == EPERM)
      error.what += "; tracepoints need root or read access to tracefs";
    return error;
  }
  std::ranges::sort(names);
  return names;
}

Result<std::string> text_file(const std::string& path) {
  auto bytes = format::read_file(path);
  if (!bytes) return std::move(bytes.error());
  return std::string(format::as_text(*bytes));
}

}  // namespace

Result<Tracefs> Tracefs::find() {
  const auto has_events = [](const char* place) { return exists(std::string(place) + "/events"); };
  for (const char* place : kPlaces) {
    if (has_events(place)) return Tracefs(place);
  }
  if (mount("nodev", kPlaces[0], "tracefs", 0, nullptr) == 0 && has_events(kPlaces[0]))
    return Tracefs(kPlaces[0]);
  if (faccessat(AT_FDCWD, kPlaces[0], R_OK | X_OK, AT_EACCESS) != 0 && errno == EACCES)
    return Error{std::string("only root can read ") + kPlaces[0] +
                 "; run as root or with CAP_DAC_READ_SEARCH, or as root: mount -o remount,mode=755 " +
                 kPlaces[0]};
  return Error{std::string("tracefs is not mounted; as root: mount -t tracefs nodev ") + kPlaces[0]};
}

Result<std::vector<Tracepoint>> Tracefs::matching(const std::string& system, const std::string& name) const {
  const auto systems = folders_of(directory_ + "/events");
  if (!systems) return systems.error();
  std::vector<Tracepoint> found;
  std::vector<std::string> near_names;
  bool has_system = false;
  for (const std::string& candidate : *systems) {
    if (fnmatch(system.c_str(), candidate.c_str(), 0) != 0) continue;
    has_system = true;
    const auto names = folders_of(directory_ + "/events/" + candidate);
    if (!names) return names.error();
    for (const std::string& event : *names) {
      near_names.push_back(event);
      if (fnmatch(name.c_str(), event.c_str(), 0) != 0) continue;
      const std::string path = directory_ + "/events/" + candidate + "/" + event + "/id";
      if (!exists(path)) continue;  // ftrace's own events have no id
      const auto text = text_file(path);
      if (!text) return text.error();
      found.push_back({candidate, event, number_at<std::uint64_t>(*text)});
    }
  }
  if (!found.empty()) return found;
  if (!has_system) {
    return use_error("unknown tracepoint " + system + ":" + name + ": this kernel has no subsystem '" +
                     system + "'" + cli::suggestion(system, *systems));
  }
  return use_error("unknown tracepoint " + system + ":" + name +
                   (is_glob(name) ? ": nothing matches" : cli::suggestion(name, near_names)));
}

Result<format::TracingData> Tracefs::formats_of(std::span<const Tracepoint> tracepoints) const {
  format::TracingData data;
  data.is_big_endian = std::endian::native == std::endian::big;
  data.long_size = sizeof(long);
  data.page_size = static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
  data.header_page = text_of_file(directory_ + "/events/header_page");
  data.header_event = text_of_file(directory_ + "/events/header_event");
  data.printk_formats = text_of_file(directory_ + "/printk_formats");
  data.saved_cmdlines = text_of_file(directory_ + "/saved_cmdlines");
  for (const Tracepoint& tracepoint : tracepoints) {
    auto text = text_file(directory_ + "/events/" + tracepoint.system + "/" + tracepoint.name + "/format");
    if (!text) return std::move(text.error());
    data.formats.push_back({tracepoint.system, std::move(*text)});
  }
  // Tracing data has the events grouped by system.
  std::ranges::stable_sort(data.formats, {}, &format::TracepointFormat::system);
  return data;
}

namespace {

// The next line of a field in a format file, from its declaration on: "pid_t prev_pid;\toffset:24;...".
// `format` is shortened; empty: there is none.
std::string_view next_field(std::string_view& format) {
  while (!format.empty()) {
    std::string_view line = take_until(format, '\n');
    if (take_prefix(line, "\tfield:")) return line;
  }
  return {};
}

// The number after `word` ("\toffset:") in a field's line.
std::optional<std::uint32_t> number_after(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + word.size());
  return take_number<std::uint32_t>(line);
}

}  // namespace

std::vector<std::string> fields_in(std::string_view format) {
  std::vector<std::string> fields;
  for (auto line = next_field(format); !line.empty(); line = next_field(format)) {
    const std::string_view field = line.substr(0, line.find(';'));
    if (field.find(" common_") == std::string_view::npos) fields.emplace_back(field);
  }
  return fields;
}

Result<bpf::ProbeArgument> field_argument(std::string_view format, const std::string& name) {
  for (auto line = next_field(format); !line.empty(); line = next_field(format)) {
    const std::string_view field = line.substr(0, line.find(';'));
    if (name_of_field(field) != name) continue;
    const auto offset = number_after(line, "\toffset:"), size = number_after(line, "\tsize:"),
               is_signed = number_after(line, "\tsigned:");
    constexpr std::uint32_t kMostOffset = 8192;  // of a record
    if (!offset || !size || *offset > kMostOffset) break;
    bpf::ProbeArgument argument{.name = name, .source = bpf::ProbeArgument::Source::Record};
    argument.displacement = static_cast<std::int32_t>(*offset);
    argument.is_signed = is_signed.value_or(0) != 0;
    const bool is_elsewhere = field.starts_with("__data_loc char[]"), is_list = field.ends_with(']');
    if (is_elsewhere || (is_list && field.starts_with("char "))) {
      argument.shape = bpf::ProbeArgument::Shape::KernelText;
      argument.size = is_elsewhere ? 4 : 1;  // of the word that says where, or of a letter
      return argument;
    }
    const bool is_number = std::has_single_bit(*size) && *size <= 8 && *offset % *size == 0;
    if (is_list || field.starts_with("__") || !is_number) break;
    argument.size = static_cast<std::uint8_t>(*size);
    if (field.find('*') != std::string_view::npos) argument.shape = bpf::ProbeArgument::Shape::Hex;
    return argument;
  }
  return use_error("'" + name + "' is neither a number nor a text that a BPF program can read");
}

std::string name_of_field(std::string_view field) {
  if (field.ends_with(']')) field = field.substr(0, field.rfind('['));
  return std::string(field.substr(field.find_last_of(" *") + 1));
}

}  // namespace tacho::record
