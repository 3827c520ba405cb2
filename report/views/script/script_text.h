// Samples one after another as text, byte for byte as perf 6.1's `script` prints them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/decode/payload.h"
#include "report/decode/tracepoint_text.h"
#include "report/output/text_output.h"
#include "report/perf_text/frame_text.h"
#include "report/perf_text/instruction_text.h"
#include "report/perf_text/line_start.h"
#include "report/perf_text/sample_fields_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/by_number.h"
#include "report/samples/index_table.h"
#include "report/samples/session.h"

namespace tacho::report {

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
  ScriptText(Session& session, const FieldChoice& fields, Names names, TimeText times, FrameShape shape = {});

  void write(TextBuffer& out, const ResolvedSample& sample);
  // Whether it looks at more of records than what Sink::Reads::Start has, of the events known by now.
  bool reads_records() const;
  // "comm tid ..." of another record's line.
  void write_start(TextBuffer& out, const OtherEvent& event);
  // What the texts lack because the system refused something; once, at the end.
  void report(format::Diagnostics& diagnostics) const;

 private:
  // "TAB ADDRESS SYMBOL+OFFSET (MODULE)": what all places of a function share.
  struct Function {
    std::string_view name;  // as resolved: its address is its key, with the module
    const symbolize::Module* module = nullptr;
    std::string_view before, behind;  // the offset, or in place of one
    bool has_offset = false;
  };
  // The line of a place, in pieces: whole lines would take more memory than all else here.
  struct FrameLine {
    static constexpr std::uint32_t kUnmade = ~std::uint32_t{0}, kWhole = kUnmade - 1;
    std::uint64_t address = 0;         // kWhole: the number of its text in `wholes`
    std::uint32_t function = kUnmade;  // number
    std::uint32_t offset = 0;          // in the function, bytes
  };
  struct KnownStack {
    std::uint32_t number = 0;
    bool is_seen = false;
    std::string_view text{};  // in stack_store_, once it was seen twice
  };
  // Texts made once for each set of fields that decides them.
  struct PlaceTexts {
    std::uint64_t fields = 0;
    ByNumber<FrameLine> frames;        // by location
    ByNumber<std::string_view> alone;  // the same, of samples without a call chain; without data: not made
    // Of stacks that were met lately, by the low bits of their numbers.
    std::vector<KnownStack> stacks = std::vector<KnownStack>(std::size_t{1} << 15);
    std::vector<Function> functions;
    IndexTable by_name;  // of functions
    std::vector<std::string_view> wholes;
  };
  PlaceTexts& place_texts(const Fields& fields);
  std::string_view kept(std::string_view& place);
  FrameLine make_line(PlaceTexts& texts, std::span<const symbolize::Frame> frames, const Fields& fields);
  std::uint32_t function_of(PlaceTexts& texts, const symbolize::Frame& frame, const Fields& fields);
  bool has_room(std::size_t more) const {
    return frame_store_.size() + stack_store_.size() + more <= most_text_;
  }
  void write_line(TextBuffer& out, PlaceTexts& texts, std::uint32_t location, const Fields& fields);
  std::string_view place_text(const Location& location, const Fields& fields);
  void write_chain(TextBuffer& out, const Stack& stack, const Fields& fields);
  void keep_stack(KnownStack& known, std::string_view text);
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
  std::deque<PlaceTexts> place_texts_;  // few
  TextStore frame_store_, stack_store_;
  std::size_t most_text_;  // bytes that both may keep: grows with the samples that were shown
  TextBuffer scratch_;
};

// perf's dump of a BPF payload: eight bytes a line, and the text when it is one.
void write_bpf_output(TextBuffer& out, Bytes payload, Names names);

}  // namespace tacho::report
