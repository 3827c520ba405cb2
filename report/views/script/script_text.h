// Samples one after another as text, byte for byte as perf 6.1's `script` prints them, and the stores of
// texts that make this fast (KeptTexts, SafeNames).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/records/record.h"
#include "report/decode/payload.h"
#include "report/decode/tracepoint_text.h"
#include "report/output/text_output.h"
#include "report/perf_text/frame_lines.h"
#include "report/perf_text/frame_text.h"
#include "report/perf_text/instruction_text.h"
#include "report/perf_text/line_start.h"
#include "report/perf_text/sample_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "symbolize/frame.h"

namespace tacho::report {

// Texts of addresses by number, each made once while there is room. With inlined calls the text of one
// address can be as long as debug information allows: a capture of 1.6 MB had 2 GB of texts.
class KeptTexts {
 public:
  explicit KeptTexts(std::size_t most_bytes = std::size_t{64} << 20) : most_bytes_(most_bytes) {}

  // The result has no data if the text is not kept. Results of both are valid until the next keep().
  std::string_view find_text(LocationId id) const { return texts_.find(id); }
  // If there are too many texts, all are dropped first; they are made again when needed.
  std::string_view keep(LocationId id, std::string_view text) {
    if (store_.size() + text.size() > most_bytes_) {
      texts_.forget();
      store_ = {};
    }
    return texts_[id] = store_.keep(text);
  }
  std::size_t size() const { return store_.size(); }  // bytes

 private:
  std::size_t most_bytes_;
  IdMap<LocationId, std::string_view> texts_;
  TextStore store_;
};

// How the numbers of a tracepoint's field are written, where a recorder's payload would have an enum; empty:
// unchanged. `event`: "syscalls:sys_exit_openat". `architecture`: of the recording host, in the form of
// uname, which decides the names of system calls.
//
//   id, __syscall_nr of system calls    openat
//   ret of their ends                   -ENOENT, else the number
//   prev_state of sched_switch          S, D, R (runnable)
//   dev, s_dev                          259:1
using NumberText = std::function<std::string(std::int64_t)>;
NumberText kernel_number_text(std::string_view event, const PayloadField& field,
                              std::string_view architecture);

// Whether the field is an Internet address: 4 or 16 bytes, with "addr" in its name.
bool is_internet_address(const PayloadField& field);
std::string internet_address(const PayloadField& field, Bytes payload, std::endian order);

// The option --show-...-events that a record other than a sample belongs to.
enum class RecordGroup : std::uint8_t { None, Task, Mmap, Switch, Namespaces, Lost, Bpf, Cgroup, TextPoke };

RecordGroup group_of(const format::Record& record);
// Writes a record as perf 6.1's `script --show-...-events` does, with the line's end: "PERF_RECORD_COMM exec:
// dd:12/12".
void write_record(TextBuffer& out, std::uint32_t type, const format::Record& record, Names names);
// The same for changed kernel code, with the function that it is in.
void write_text_poke(TextBuffer& out, const format::TextPokeRecord& record, const symbolize::Frame& frame,
                     Names names);

// Safe forms of names, made once for each name that is not safe itself. The bytes of the names must stay
// where they are.
class SafeNames {
 public:
  explicit SafeNames(Names names) : names_(names) {}
  std::string_view safe_name(std::string_view name) {
    if (names_ == Names::Raw || is_plain(name)) return name;
    const auto [row, is_new] = safe_.try_emplace(name.data());
    if (is_new || row->second.size != name.size()) row->second = {name.size(), printable(name, names_)};
    return row->second.text;
  }
  Names mode() const { return names_; }

 private:
  struct Safe {
    std::size_t size = 0;
    std::string text;
  };
  Names names_;
  std::unordered_map<const char*, Safe> safe_;
};

// How call chains and lines of source are shown.
struct FrameShape {
  std::vector<std::string> last_functions;  // a call chain ends at these
  bool has_folders = false;                 // source files are shown with their folders
  std::size_t most_blocks = 0;              // of code between branches; 0: no limit
};

// Whether texts of `fields` resolve addresses other than the samples' own.
bool names_other_addresses(const Session& session, const FieldChoice& fields);

class ScriptText {
 public:
  // `naming`: locked while the resolver is used; null: no other thread uses it.
  ScriptText(Session& session, const FieldChoice& fields, Names names, TimeText times, FrameShape shape = {},
             std::mutex* naming = nullptr);

  void write(TextBuffer& out, const ResolvedSample& sample);
  // Whether several threads can write samples at the same time: if only the first fields of records and names
  // of the samples' own addresses are needed.
  bool can_fork() const;
  // Writes "comm tid ..." for the line of another record.
  void write_start(TextBuffer& out, const NonSampleRecord& event);
  // Reports what the text lacks because the system refused something. Call it once, at the end.
  void report(format::Diagnostics& diagnostics) const;

 private:
  // The writer for frames with these fields.
  FrameLines& lines_of(const Fields& fields);
  void write_chain(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_cut_chain(TextBuffer& out, const Stack& stack, const Fields& fields);
  void write_trace(TextBuffer& out, const ResolvedSample& sample);
  void write_payload(TextBuffer& out, const ResolvedSample& sample, const PayloadSchema& schema);
  void write_address(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_instructions(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_end(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_branch_sample(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_location(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  bool has_chain(const ResolvedSample& sample) const;
  void learn_events();

  Session* session_;
  Resolver* resolver_;
  std::mutex* naming_;
  const FieldChoice* fields_;
  SafeNames comms_;
  TimeText times_;
  FrameShape shape_;
  SourcePath source_path_;
  std::vector<std::string> event_names_;  // safe, padded to the longest
  EventSchemas schemas_;
  std::optional<TracepointText> traces_;
  SampleFieldsText more_;
  std::optional<InstructionText> instructions_;  // made when first needed
  SourceCode source_code_;
  std::deque<std::pair<std::uint64_t, FrameLines>> lines_;  // few, by the bits of the fields
};

// Writes perf's dump of a BPF payload: eight bytes a line, and the text if it is one.
void write_bpf_output(TextBuffer& out, Bytes payload, Names names);

}  // namespace tacho::report
