#include "report/decode/tracepoint_text.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "format/extensions/tracing_data.h"
#include "report/decode/payload.h"
#include "report/decode/print_program.h"

namespace tacho::report {
namespace {

// libtraceevent trusts offsets and lengths in a record and its format. A record is below 64 KiB, offsets in
// it have 16 bits, and lengths are checked or have 16 bits of at most 8 bytes each. So the record is copied
// into a buffer of this size, filled with zeros, and all reads stay inside.
constexpr std::size_t kRoom = std::size_t{1} << 20;  // bytes
constexpr int kDeepestFormat = 64;                   // nested expressions
// The number of formats in one handle of the library: adding one takes time proportional to those it has.
constexpr std::size_t kFormatsOfAHandle = 1024;
// Constant strings, of which each handle has a copy, in all handles; a kernel has hundreds.
constexpr std::size_t kMostStringLookups = std::size_t{1} << 20;

struct FreeHandle {
  void operator()(tep_handle* handle) const noexcept { tep_free(handle); }
};
using Handle = std::unique_ptr<tep_handle, FreeHandle>;

class Sequence {  // libtraceevent's growing text
 public:
  Sequence() { trace_seq_init(&seq_); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence() { trace_seq_destroy(&seq_); }
  trace_seq* get() { return &seq_; }
  void reset() { trace_seq_reset(&seq_); }
  std::string_view view() const {
    return seq_.buffer ? std::string_view(seq_.buffer, seq_.len) : std::string_view();
  }

 private:
  trace_seq seq_{};
};

bool is_number(const tep_print_arg* arg, unsigned long long least, unsigned long long most) {
  if (arg == nullptr || arg->type != TEP_PRINT_ATOM || arg->atom.atom == nullptr) return false;
  char* end = nullptr;
  const auto value = std::strtoull(arg->atom.atom, &end, 0);
  return end != arg->atom.atom && value >= least && value <= most;
}

// Decides whether evaluating a print format is safe for any bytes of a record.
class SafetyCheck {
 public:
  bool is_safe(const tep_event& event) {
    if ((event.flags & (TEP_EVENT_FL_ISPRINT | TEP_EVENT_FL_ISBPRINT)) != 0) return false;
    if (!fits(event.format.common_fields) || !fits(event.format.fields)) return false;
    if ((event.flags & static_cast<int>(TEP_EVENT_FL_FAILED)) != 0) return true;
    return widths_are_small(event.print_fmt.format) && all_safe(event.print_fmt.args, 0);
  }
  // Fields with a number of bytes to read, which must not exceed the record's size.
  std::vector<tep_format_field*> lengths;
  bool needs_program = false;  // safe for PrintProgram, not for the library

 private:
  static bool fits(const tep_format_field* field) {
    for (; field != nullptr; field = field->next) {
      if (field->offset < 0 || field->size < 0 || field->offset > kLargestRecord) return false;
      if (field->size > kLargestRecord) return false;
    }
    return true;
  }
  // A width from the record, or a very large one, could make gigabytes of blanks. The library misreads a
  // negative
  // "%.*s" as a format without that argument, so only PrintProgram prints such formats.
  bool widths_are_small(const char* format) {
    for (; format != nullptr && *format != '\0'; ++format) {
      if (*format != '%') continue;
      if (format[1] == '%') ++format;
      if (format[1] == '.' && format[2] == '*' && format[3] == 's') {
        needs_program = true;
        format += 2;
        continue;
      }
      for (int digits = 0; format[1] != '\0' && std::strchr("-+ #0123456789.*hlLzZ", format[1]) != nullptr;
           ++format) {
        digits = std::isdigit(static_cast<unsigned char>(format[1])) != 0 ? digits + 1 : 0;
        if (format[1] == '*' || digits > 3) return false;
      }
    }
    return true;
  }
  bool all_safe(const tep_print_arg* arg, int depth) {
    for (; arg != nullptr; arg = arg->next) {
      if (!one_safe(arg, depth)) return false;
    }
    return true;
  }
  bool one_safe(const tep_print_arg* arg, int depth) {
    if (arg == nullptr || depth > kDeepestFormat) return false;
    switch (arg->type) {
      case TEP_PRINT_NULL:
      case TEP_PRINT_ATOM:
      case TEP_PRINT_FIELD:
      case TEP_PRINT_STRING:
      case TEP_PRINT_BITMASK:
      case TEP_PRINT_CPUMASK:
      case TEP_PRINT_DYNAMIC_ARRAY:
      case TEP_PRINT_DYNAMIC_ARRAY_LEN:
        return true;
      case TEP_PRINT_FLAGS:
        return one_safe(arg->flags.field, depth + 1);
      case TEP_PRINT_SYMBOL:
        return one_safe(arg->symbol.field, depth + 1);
      case TEP_PRINT_TYPE:
        return one_safe(arg->typecast.item, depth + 1);
      case TEP_PRINT_HEX:
      case TEP_PRINT_HEX_STR:
        return is_place(arg->hex.field) && is_length(arg->hex.size);
      case TEP_PRINT_INT_ARRAY:
        return is_place(arg->int_array.field) && is_length(arg->int_array.count) &&
               is_number(arg->int_array.el_size, 1, 8);
      case TEP_PRINT_OP:
        return operation_safe(arg->op, depth);
      default:
        return false;
    }
  }
  bool operation_safe(const tep_print_arg_op& op, int depth) {
    if (op.op == nullptr) return false;
    const char first = op.op[0];
    if (first == '[') return is_place(op.left) && is_number(op.right, 0, 4096);
    // A divisor of zero would end the program.
    if ((first == '/' || first == '%') && !is_number(op.right, 1, ~0ULL)) return false;
    const bool is_unary = op.left == nullptr || op.left->type == TEP_PRINT_NULL;
    return (is_unary || one_safe(op.left, depth + 1)) && one_safe(op.right, depth + 1);
  }
  static bool is_place(const tep_print_arg* arg) {
    return arg != nullptr && (arg->type == TEP_PRINT_FIELD || arg->type == TEP_PRINT_DYNAMIC_ARRAY);
  }
  bool is_length(const tep_print_arg* arg) {
    while (arg != nullptr && arg->type == TEP_PRINT_TYPE) arg = arg->typecast.item;
    if (arg == nullptr) return false;
    if (arg->type == TEP_PRINT_DYNAMIC_ARRAY_LEN) return true;
    if (arg->type == TEP_PRINT_FIELD && arg->field.field != nullptr) {
      lengths.push_back(arg->field.field);
      return true;
    }
    return is_number(arg, 0, kLargestRecord);
  }
};

// The library's parser crashes on some broken formats, so they are parsed in a child process first.
enum class Tried { Sound, Deadly, Refused };
template <class Try>
Tried try_in_child(Try&& attempt) {
  constexpr unsigned kPatience = 5;  // seconds
  const pid_t child = ::fork();
  if (child < 0) return Tried::Refused;
  if (child == 0) {
    for (const int fatal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(fatal, SIG_DFL);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::alarm(kPatience);
    attempt();
    ::_exit(0);  // none of the parent's buffers may be written twice
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Tried::Refused;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Tried::Sound : Tried::Deadly;
}

struct Format {
  const format::TracepointFormat* source = nullptr;
  bool is_parsed = false;
  tep_event* event = nullptr;           // null: not to be evaluated
  std::optional<PrintProgram> program;  // the fast way to the same text
  std::vector<tep_format_field*> lengths;
};

}  // namespace

struct TracepointText::State {
  const format::TracingData* tracing;
  format::ConstantStrings strings;
  FindFunction find_function;
  std::string found_name;            // what the resolver returned last; libtraceevent copies it
  std::vector<Handle> handles;       // formats are parsed into the last
  std::size_t parsed_into_last = 0;  // how many
  std::unordered_map<std::uint64_t, Format, format::SeededHash> formats;
  Evaluation evaluation = Evaluation::Fast;
  std::size_t refused = 0;  // formats for which the system gave no child to try them in
  bool has_too_many_strings = false;
  bool one_at_a_time = false;  // the parser crashed on a format of this capture
  TextBuffer fast_text;
  std::vector<char> room = std::vector<char>(kRoom);
  Sequence sequence;

  // Some of the formats, by the low bits of their numbers: few take turns.
  struct Recent {
    std::uint64_t id = 0;
    Format* format = nullptr;
  };
  std::array<Recent, 64> recent{};

  static char* resolve(void* self, unsigned long long* address, char** module) noexcept;
  Format* parsed(std::uint64_t id, format::Bytes record, std::endian order);
  bool make_room_for_formats();
  void parse(Format& wanted);
  std::vector<Format*> not_parsed(const Format& from);
  bool parse_text(const Format& format);
  void examine(Format& format);
  bool lengths_fit(const Format& format, std::size_t size);
};

char* TracepointText::State::resolve(void* self, unsigned long long* address, char** module) noexcept {
  auto& state = *static_cast<State*>(self);
  auto function = state.find_function(*address);
  if (!function) return nullptr;
  state.found_name = std::move(function->name);
  *address = function->start;
  *module = nullptr;
  return state.found_name.data();
}

TracepointText::TracepointText(const format::TracingData& tracing, FindFunction find_function,
                               Evaluation evaluation)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.evaluation = evaluation;
  state.tracing = &tracing;
  state.strings = format::ConstantStrings(tracing.printk_formats);
  state.find_function = std::move(find_function);
  tep_set_loglevel(TEP_LOG_NONE);
  for (const auto& format : tracing.formats) {
    if (const auto id = format::tracepoint_id(format.text))
      state.formats.emplace(*id, Format{&format, false, nullptr, {}, {}});
  }
}

TracepointText::TracepointText(TracepointText&&) noexcept = default;
TracepointText& TracepointText::operator=(TracepointText&&) noexcept = default;
TracepointText::~TracepointText() = default;

// A handle for the next formats, if the last is full. False: the library has no memory.
bool TracepointText::State::make_room_for_formats() {
  if (!handles.empty() && parsed_into_last < kFormatsOfAHandle) return true;
  Handle handle(tep_alloc());
  if (handle == nullptr) return false;
  tep_set_flag(handle.get(), TEP_NSEC_OUTPUT);
  tep_set_file_bigendian(handle.get(), tracing->is_big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
  tep_set_local_bigendian(handle.get(),
                          std::endian::native == std::endian::big ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
  tep_set_long_size(handle.get(), tracing->long_size == 4 ? 4 : 8);
  tep_set_page_size(handle.get(), 4096);
  if (find_function) tep_set_function_resolver(handle.get(), &State::resolve, this);
  // Each handle copies them.
  if (strings.rows().size() * (handles.size() + 1) <= kMostStringLookups) {
    for (const auto& row : strings.rows())
      tep_register_print_string(handle.get(), ('"' + row.text + '"').c_str(), row.address);
  } else {
    has_too_many_strings = true;
  }
  handles.push_back(std::move(handle));
  parsed_into_last = 0;
  return true;
}

// Parses a format together with some of the following ones: one child for all costs as much as one for each.
// If the child crashes, the format is tried alone.
void TracepointText::State::parse(Format& wanted) {
  if (!make_room_for_formats()) return;
  std::vector<Format*> together = not_parsed(wanted);
  const auto parse_all = [&] {
    for (const Format* format : together) parse_text(*format);
  };
  Tried tried = try_in_child(parse_all);
  if (tried == Tried::Deadly && together.size() > 1) {
    one_at_a_time = true;
    together.erase(together.begin() + 1, together.end());
    tried = try_in_child(parse_all);
  }
  if (tried == Tried::Refused) refused += together.size();
  parsed_into_last += together.size();
  for (Format* format : together) {
    format->is_parsed = true;
    if (tried == Tried::Sound && parse_text(*format)) examine(*format);
  }
}

// `from` and those behind it in the capture.
std::vector<Format*> TracepointText::State::not_parsed(const Format& from) {
  const std::size_t most = one_at_a_time ? 1 : 64;
  std::vector<Format*> found;
  const std::size_t count = tracing->formats.size();
  const auto first = static_cast<std::size_t>(from.source - tracing->formats.data());
  for (std::size_t i = 0; i < count && found.size() < most; ++i) {
    const format::TracepointFormat& source = tracing->formats[(first + i) % count];
    const auto id = format::tracepoint_id(source.text);
    const auto format = id ? formats.find(*id) : formats.end();
    if (format != formats.end() && format->second.source == &source && !format->second.is_parsed)
      found.push_back(&format->second);
  }
  return found;
}

// The library fails at a byte in a string that is not printable ASCII, such as the tab in maple_tree's
// formats. So such a byte is written as an escape sequence, which the library turns into the byte.
std::string with_escaped_strings(std::string_view text) {
  const auto start = std::min(text.find("print fmt:"), text.size());
  std::string escaped(text.substr(0, start));
  for (const char c : text.substr(start)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (c == '\t') {
      escaped += "\\t";
    } else if (c == '\r') {
      escaped += "\\r";
    } else if ((byte < 0x20 && c != '\n') || byte > 0x7e) {
      escaped += fmt::format("\\\\x{:02x}", byte);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// The library keeps a format that it could parse only in part, marks it, and prints its fields.
bool TracepointText::State::parse_text(const Format& format) {
  const std::string text = with_escaped_strings(format.source->text);
  if (text.size() > std::size_t{1} << 20) return false;
  const auto code =
      tep_parse_event(handles.back().get(), text.c_str(), text.size(), format.source->system.c_str());
  if (code == TEP_ERRNO__MEM_ALLOC_FAILED) throw std::bad_alloc();
  return true;
}

// Whether and how the records of a parsed format can be printed.
void TracepointText::State::examine(Format& format) {
  const auto id = format::tracepoint_id(format.source->text);
  tep_event* event = tep_find_event(handles.back().get(), static_cast<int>(*id));
  SafetyCheck check;
  if (event == nullptr || !check.is_safe(*event)) return;
  format.event = event;
  const bool is_ours = tracing->long_size == 8 &&
                       tracing->is_big_endian == (std::endian::native == std::endian::big) &&
                       std::endian::native == std::endian::little;
  const auto untried = static_cast<int>(TEP_EVENT_FL_FAILED) | TEP_EVENT_FL_PRINTRAW;
  if (evaluation == Evaluation::Fast && is_ours && (event->flags & untried) == 0)
    format.program = PrintProgram::compile(*event, strings);
  if (check.needs_program && !format.program) format.event = nullptr;
  format.lengths = std::move(check.lengths);
}

bool TracepointText::State::lengths_fit(const Format& format, std::size_t size) {
  return std::ranges::all_of(format.lengths, [&](tep_format_field* field) {
    return tep_read_number(format.event->tep, room.data() + field->offset, field->size) <= size;
  });
}

// The format of a record that can be printed; null when there is none.
Format* TracepointText::State::parsed(std::uint64_t id, format::Bytes record, std::endian order) {
  Recent& cached = recent[id % recent.size()];
  if (cached.format == nullptr || cached.id != id) {
    const auto found = formats.find(id);
    if (found == formats.end()) return nullptr;
    cached = {id, &found->second};
  }
  Format& format = *cached.format;
  if (record.size() > kLargestRecord || record.size() < 2) return nullptr;
  if (!format.is_parsed) parse(format);
  // The library finds the format by the record's own first field: it must be the one we checked.
  if (format.event == nullptr || format::Cursor(record, order).u16() != id) return nullptr;
  return &format;
}

bool TracepointText::write_plain(TextBuffer& out, std::uint64_t id, format::Bytes record, std::endian order) {
  const Format* const format = state_->parsed(id, record, order);
  if (format == nullptr || !format->program || !format->program->is_plain()) return false;
  format->program->run(out, record);
  return true;
}

std::optional<std::string_view> TracepointText::of(std::uint64_t id, format::Bytes record, std::uint32_t cpu,
                                                   std::endian order) {
  State& state = *state_;
  const Format* const found = state.parsed(id, record, order);
  if (found == nullptr) return std::nullopt;
  const Format& format = *found;
  if (format.program) {
    state.fast_text.clear();
    format.program->run(state.fast_text, record);
    return state.fast_text.view();
  }

  std::memcpy(state.room.data(), record.data(), record.size());
  std::optional<std::string_view> text;
  if (state.lengths_fit(format, record.size())) {
    tep_record in{};
    in.cpu = static_cast<int>(cpu);
    in.size = static_cast<int>(record.size());
    in.data = state.room.data();
    state.sequence.reset();
    tep_print_event(format.event->tep, state.sequence.get(), &in, "%s", TEP_PRINT_INFO);
    text = state.sequence.view();
  }
  std::memset(state.room.data(), 0, record.size());
  return text;
}

void TracepointText::report(format::Diagnostics& diagnostics) const {
  if (state_->has_too_many_strings) {
    diagnostics.add_line(format::Damage::BadFeature,
                         std::to_string(state_->strings.rows().size()) +
                             " constant strings in printk_formats are too many: some are shown as addresses");
  }
  if (state_->refused == 0) return;
  diagnostics.add_line(
      format::Damage::BadFeature,
      std::to_string(state_->refused) +
          " tracepoint formats: the system refuses the child process that tries them first; their "
          "records are printed field by field");
}

bool TracepointText::is_compiled(std::uint64_t id) const {
  const auto found = state_->formats.find(id);
  return found != state_->formats.end() && found->second.program.has_value();
}

}  // namespace tacho::report
