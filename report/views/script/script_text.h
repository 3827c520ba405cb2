// Samples one after another as text, byte for byte as perf 6.1's `script` prints them.
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
#include "report/perf_text/sample_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/by_number.h"
#include "report/samples/session.h"
#include "symbolize/frame.h"

namespace tacho::report {

// Texts of places by their numbers, made once while there is room for them. Inlined calls make a place's
// text as long as a file of debugging information likes: 1.6 MB of capture had 2 GB of texts.

class KeptTexts {
 public:
  explicit KeptTexts(std::size_t most_bytes = std::size_t{64} << 20) : most_bytes_(most_bytes) {}

  // Without data: not kept. Both are valid until the next keep().
  std::string_view find(std::uint32_t number) const { return texts_.find(number); }
  // Forgets all others when they are too many: they are made again when they come again.
  std::string_view keep(std::uint32_t number, std::string_view text) {
    if (store_.size() + text.size() > most_bytes_) {
      texts_.forget();
      store_ = {};
    }
    return texts_[number] = store_.keep(text);
  }
  std::size_t size() const { return store_.size(); }  // bytes

 private:
  std::size_t most_bytes_;
  ByNumber<std::string_view> texts_;
  TextStore store_;
};

// Values of the kernel's own tracepoints as people write them: tracepoints have numbers where a recorder
// would have an enum.

// How a field's numbers are written; empty: as they are. `event`: "syscalls:sys_exit_openat"; `architecture`
// of the recording host as uname says it, which decides what system calls are called.
//
//   id, __syscall_nr of system calls    openat
//   ret of their ends                   -ENOENT, else the number
//   prev_state of sched_switch          S, D, R (could go on)
//   dev, s_dev                          259:1
using NumberText = std::function<std::string(std::int64_t)>;
NumberText kernel_number_text(std::string_view event, const PayloadField& field,
                              std::string_view architecture);

// A list of bytes that is an address of the Internet: of 4 or 16 bytes, with "addr" in its name.
bool is_internet_address(const PayloadField& field);
std::string internet_address(const PayloadField& field, Bytes payload, std::endian order);

// Records that are no samples as text, as perf 6.1's `script --show-...-events` prints them.

enum class RecordGroup : std::uint8_t { None, Task, Mmap, Switch, Namespaces, Lost, Bpf, Cgroup, TextPoke };

// Which --show option a record belongs to.
RecordGroup group_of(const format::Record& record);
// "PERF_RECORD_COMM exec: dd:12/12" and the line's end.
void write_record(TextBuffer& out, std::uint32_t type, const format::Record& record, Names names);
// The same for changed kernel code, with the function it is in.
void write_text_poke(TextBuffer& out, const format::TextPokeRecord& record, const symbolize::Frame& place,
                     Names names);

// Safe forms of names that come again and again, each made once where it is another than the name. The
// name's bytes must stay where they are.
class SafeNames {
 public:
  explicit SafeNames(Names names) : names_(names) {}
  std::string_view of(std::string_view name) {
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
  std::vector<std::string> last_functions;  // a call chain ends at them
  bool has_folders = false;                 // files of source with their folders
  std::size_t most_blocks = 0;              // of code between branches; 0: all
};

// True when texts of `fields` name more of the recorded system than the samples' own places.
bool names_other_places(const Session& session, const FieldChoice& fields);

class ScriptText {
 public:
  // `naming`: locked while names are asked for; null: nobody else asks.
  ScriptText(Session& session, const FieldChoice& fields, Names names, TimeText times, FrameShape shape = {},
             std::mutex* naming = nullptr);

  void write(TextBuffer& out, const ResolvedSample& sample);
  // Whether several of them can write samples side by side: with what stands first in records, and names of
  // the samples' own places.
  bool can_fork() const;
  // "comm tid ..." of another record's line.
  void write_start(TextBuffer& out, const OtherEvent& event);
  // What the texts lack because the system refused something; once, at the end.
  void report(format::Diagnostics& diagnostics) const;

 private:
  // Of the set of fields that decides them.
  FrameLines& lines_of(const Fields& fields);
  void write_chain(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_cut_chain(TextBuffer& out, const Stack& stack, const Fields& fields);
  void write_trace(TextBuffer& out, const ResolvedSample& sample);
  void write_payload(TextBuffer& out, const ResolvedSample& sample, const PayloadSchema& schema);
  void write_address(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_instructions(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_end(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_branch_sample(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_place(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
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
  std::deque<std::pair<std::uint64_t, FrameLines>> lines_;  // few; by the fields' bits
};

// perf's dump of a BPF payload: eight bytes a line, and the text when it is one.
void write_bpf_output(TextBuffer& out, Bytes payload, Names names);

}  // namespace tacho::report
