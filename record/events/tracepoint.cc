#include "record/events/tracepoint.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "cli/nearest.h"
#include "format/base/file.h"

namespace tacho::record {
namespace {

// Whether the file can be opened. access(2) would ignore capabilities of users other than root.
bool exists(const std::string& path) { return faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0; }

namespace fs = std::filesystem;

constexpr const char* kPlaces[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

bool is_glob(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

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

// Reads a file; empty: it does not exist or cannot be read.
std::string optional_text(const std::string& path) {
  auto text = text_file(path);
  return text ? std::move(*text) : std::string();
}

}  // namespace

Result<Tracefs> Tracefs::find() {
  const auto has_events = [](const char* place) { return exists(std::string(place) + "/events"); };
  for (const char* place : kPlaces) {
    if (has_events(place)) return Tracefs(place);
  }
  if (mount("nodev", kPlaces[0], "tracefs", 0, nullptr) == 0 && has_events(kPlaces[0]))
    return Tracefs(kPlaces[0]);
  return Error{
      std::string("tracefs is not mounted, or not readable by this user; as root: mount -t tracefs nodev ") +
      kPlaces[0]};
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
      Tracepoint tracepoint{candidate, event, 0};
      std::from_chars(text->data(), text->data() + text->size(), tracepoint.id);
      found.push_back(std::move(tracepoint));
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

Result<format::TracingData> Tracefs::describe(std::span<const Tracepoint> tracepoints) const {
  format::TracingData data;
  data.is_big_endian = std::endian::native == std::endian::big;
  data.long_size = sizeof(long);
  data.page_size = static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
  data.header_page = optional_text(directory_ + "/events/header_page");
  data.header_event = optional_text(directory_ + "/events/header_event");
  data.printk_formats = optional_text(directory_ + "/printk_formats");
  data.saved_cmdlines = optional_text(directory_ + "/saved_cmdlines");
  for (const Tracepoint& tracepoint : tracepoints) {
    auto text = text_file(directory_ + "/events/" + tracepoint.system + "/" + tracepoint.name + "/format");
    if (!text) return std::move(text.error());
    data.formats.push_back({tracepoint.system, std::move(*text)});
  }
  // Tracing data has the events grouped by system.
  std::ranges::stable_sort(data.formats, {}, &format::TracepointFormat::system);
  return data;
}

std::vector<std::string> fields_in(std::string_view format) {
  constexpr std::string_view kField = "\tfield:";  // "\tfield:pid_t prev_pid;\toffset:24;..."
  std::vector<std::string> fields;
  for (std::size_t at = format.find(kField); at != std::string_view::npos; at = format.find(kField, at + 1)) {
    const std::string_view rest = format.substr(at + kField.size());
    const std::string_view field = rest.substr(0, rest.find(';'));
    if (field.find(" common_") == std::string_view::npos) fields.emplace_back(field);
  }
  return fields;
}

namespace {

// The number after "\\toffset:" in the rest of a field's line.
std::optional<std::uint32_t> number_behind(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint32_t number = 0;
  const char* const begin = line.data() + at + word.size();
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), number);
  return error == std::errc{} && end != begin ? std::optional(number) : std::nullopt;
}

}  // namespace

Result<bpf::ProbeArgument> field_argument(std::string_view format, const std::string& name) {
  constexpr std::string_view kField = "\tfield:";
  for (std::size_t at = format.find(kField); at != std::string_view::npos; at = format.find(kField, at + 1)) {
    const std::string_view line =
        format.substr(at + kField.size(), format.find('\n', at) - at - kField.size());
    const std::string_view field = line.substr(0, line.find(';'));
    if (name_of_field(field) != name) continue;
    const auto offset = number_behind(line, "\toffset:"), size = number_behind(line, "\tsize:"),
               is_signed = number_behind(line, "\tsigned:");
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
