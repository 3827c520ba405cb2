// A whole capture through a session on two threads: one reads, the other names each sample's places and looks
// at the header. Built with ThreadSanitizer as well, it would tell a race between them.
#include "fuzz/capture_session.h"
#include "report/samples/session.h"

using namespace tacho;
using namespace tacho::report;

namespace {

class Looker : public Sink {
 public:
  explicit Looker(Session& session) : session_(&session) {}
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    Resolver& resolver = session_->resolver();
    seen +=
        resolver.frame(*sample.location).function.size() + sample.comm.size() + sample.event().name.size();
    seen += session_->features().attachment("kallsyms") != nullptr ? 1 : 0;
    if (sample.stack != nullptr) {
      for (const LocationId number : sample.stack->frames)
        seen += resolver.frames(resolver.location(number)).size();
    }
    return ++samples_ < 20'000 ? Flow::Continue : Flow::Stop;
  }
  std::size_t seen = 0;

 private:
  Session* session_;
  int samples_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::show_capture<Looker>(data, size, [](const Session&, const Looker&) {});
  return 0;
}
