// A whole capture through the session: every field of its samples as text, every other record, the header.
#include "fuzz/capture_session.h"
#include "report/perf_text/header_text.h"
#include "report/views/script/script_text.h"

using namespace tacho;
using namespace tacho::report;

namespace {

class Everything : public Sink {
 public:
  explicit Everything(Session& session) : session_(&session) {}
  Flow on_sample(const ResolvedSample& sample) override {
    if (!text_ && !start()) return Flow::Stop;
    text_->write(out, sample);
    return flow();
  }
  Flow on_non_sample(const NonSampleRecord& event) override {
    if (!text_ && !start()) return Flow::Stop;
    text_->write_start(out, event);
    write_record(out, event.view->type, *event.record, Names::Safe);
    return flow();
  }
  TextBuffer out;

 private:
  bool start() {
    const std::vector<std::string> names(session_->events().size(), "event");
    std::vector<std::string> remarks;
    if (!fields_.apply("+payload,+misc,+pid,+brstacksym,+insn,+insnlen,+flags", remarks)) return false;
    // Named by type, what was not sampled is dropped.
    for (const std::string type : {"hw:", "sw:", "trace:", "raw:", "break:"}) {
      if (!fields_.apply(type + "+addr,+iregs,+uregs,+data_src,+weight,+ins_lat,+phys_addr,+data_page_size",
                         remarks))
        return false;
    }
    FieldChoice usual;
    if (!fields_.settle(session_->events(), names, CallChains::Show, Origin::File)) fields_ = usual;
    text_.emplace(*session_, fields_, Names::Safe,
                  TimeText(TimeDigits::Nanoseconds, TimeBase::Clock, std::nullopt));
    return true;
  }
  Flow flow() {
    out.clear();
    return ++records_ < 2000 ? Flow::Continue : Flow::Stop;
  }
  Session* session_;
  FieldChoice fields_;
  std::optional<ScriptText> text_;
  int records_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::show_capture<Everything>(data, size, [](Session& session, Everything& sink) {
    write_header(sink.out, session.layout(), session.events(), session.features(), Names::Safe);
    write_own_features(sink.out, session.features(), Names::Safe);
  });
  return 0;
}
