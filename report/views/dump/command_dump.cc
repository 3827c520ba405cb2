// tacho dump: every record of a capture, decoded.
#include <bitset>

#include "format/container/capture_reader.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/decode/record_fields.h"
#include "report/output/field_sinks.h"

namespace tacho::report {
namespace {

using format::CaptureReader;
using format::Damage;
using format::RecordView;

// Prints one line for each item, as text or JSON.
class Dump {
 public:
  Dump(TextOutput& out, CaptureReader& reader, format::Diagnostics& diagnostics, bool as_json)
      : out_(out), reader_(reader), diagnostics_(diagnostics), as_json_(as_json) {}

  void header() {
    line("HEADER", [&](FieldSink& to) { describe_layout(to, reader_.layout()); });
  }
  void events_and_features() {
    for (; events_done_ < reader_.events().size(); ++events_done_)
      line("EVENT", [&](FieldSink& to) { describe_event(to, events_done_, reader_.events()); });
    for (std::uint32_t feature = 0; feature < format::abi::kFeatureCount; ++feature) {
      if (!reader_.features().present[feature] || features_done_[feature]) continue;
      features_done_.set(feature);
      line("FEATURE", [&](FieldSink& to) {
        to.number("feature", feature);
        to.text("feature_name", format::feature_name(feature));
        describe_feature(to, feature, reader_.features());
      });
    }
  }
  void record(const RecordView& view) {
    const std::string_view name = format::record_name(view.type);
    line(name, [&](FieldSink& to) {
      to.number("offset", view.offset);
      to.hex("misc", view.misc);
      static const format::EventAttr kNone;  // for perf's own records, which may come before any event
      const bool is_kernel = view.type < format::abi::kRecordUserStart;
      const auto event = reader_.events().event_of(view);
      if (!event && is_kernel) {
        diagnostics_.add_finding(Damage::UnknownEvent, view.offset, std::string(name));
        return to.bytes("body", view.bytes.subspan(format::kRecordHeaderSize));
      }
      const format::EventAttr& attr = event ? reader_.events()[*event].attr : kNone;
      if (is_kernel) to.text("event", reader_.events()[*event].name);
      if (!fields(to, view, attr)) {
        diagnostics_.add_finding(Damage::BadRecord, view.offset,
                                 std::string(name) + " is shorter than its fields");
        return to.bytes("body", view.bytes.subspan(format::kRecordHeaderSize));
      }
      if (is_kernel && view.type != format::abi::kRecordSample)
        describe_sample_id(to, format::parse_sample_id(view, attr), attr);
    });
  }

 private:
  // False when the record is too short for its type.
  bool fields(FieldSink& to, const RecordView& view, const format::EventAttr& attr) {
    if (view.type == format::abi::kRecordSample) {
      const auto sample = format::parse_sample(view, attr);
      if (!sample) return false;
      if (sample->unread != 0)
        diagnostics_.add_finding(Damage::BadRecord, view.offset, "a sample with bytes after its last field");
      describe_sample(to, *sample, attr);
      return true;
    }
    const auto record = format::parse_record(view, attr);
    if (!record) return false;
    describe_record(to, *record, view);
    return true;
  }

  template <class Describe>
  void line(std::string_view type, Describe&& describe) {
    if (as_json_) {
      JsonFields to(out_);
      to.text("record", type);
      describe(to);
      to.finish();
    } else {
      out_.text(type);
      TextFields to(out_);
      describe(to);
    }
    out_.end_line();
  }

  TextOutput& out_;
  CaptureReader& reader_;
  format::Diagnostics& diagnostics_;
  bool as_json_;
  std::size_t events_done_ = 0;
  std::bitset<format::abi::kFeatureCount> features_done_;
};

}  // namespace

Result<cli::ExitStatus> run_dump(const std::vector<std::string>& arguments) {
  ReadingOptions options;
  bool as_json = false;
  auto line = command_line(
      "dump",
      "Prints every record of a capture, one a line, with all of its fields, in the order of the file: the "
      "header, the events, the feature sections, then the records (in a pipe, events and features are "
      "records "
      "too). docs/capture-format.md lists the names of the fields.");
  add_input_options(line.options, options);
  line.options.push_back(flag("--json", "one JSON object a line", as_json));
  line.epilog.insert(0,
                     "Examples:\n"
                     "  tacho dump perf.data | less\n"
                     "  tacho dump perf.data --json | grep MMAP2    records of one type\n"
                     "\n");
  return run_command(line, arguments, [&] {
    return show_records(
        options,
        [&](CaptureReader& reader, format::Diagnostics& diagnostics, TextOutput& out) -> Result<Shown> {
          Dump dump(out, reader, diagnostics, as_json);
          dump.header();
          dump.events_and_features();
          while (const auto record = reader.next_record()) {
            if (reader.layout().is_pipe) dump.events_and_features();  // which are records of a pipe
            dump.record(*record);
            if (out.is_done()) break;
          }
          return Shown(Symbols::NotUsed);
        });
  });
}

}  // namespace tacho::report
