// The library of tacho/capture.h, over a session.
#include "report/include/tacho/capture.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "format/base/printable.h"
#include "format/records/perf_abi.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"

namespace tacho {
namespace {

using report::ResolvedSample;

bool is_kernel_mode(std::uint8_t cpumode) {
  return cpumode == format::abi::kCpumodeKernel || cpumode == format::abi::kCpumodeGuestKernel;
}

// The frames of locations, looked up once each. Their texts live as long as this.
class FramesOfLocations {
 public:
  explicit FramesOfLocations(report::Resolver& resolver) : resolver_(&resolver) {}

  void append(std::vector<StackFrame>& stack, const report::Location& location) {
    const std::vector<StackFrame>& frames = frames_of(location);
    stack.insert(stack.end(), frames.begin(), frames.end());
  }
  void append(std::vector<StackFrame>& stack, report::LocationId location) {
    append(stack, resolver_->location(location));
  }

 private:
  const std::vector<StackFrame>& frames_of(const report::Location& location) {
    const auto [known, is_new] = frames_.try_emplace(location.id);
    if (!is_new) return known->second;
    for (const symbolize::Frame& frame : resolver_->frames(location)) {
      const std::string_view module = frame.module == nullptr ? "" : std::string_view(frame.module->path);
      known->second.push_back({text_of(frame.function), text_of(module), frame.ip.value, frame.is_inlined,
                               is_kernel_mode(frame.cpumode)});
    }
    return known->second;
  }
  std::string_view text_of(std::string_view text) { return *texts_.emplace(text).first; }

  report::Resolver* resolver_;
  std::map<report::LocationId, std::vector<StackFrame>> frames_;
  std::set<std::string, std::less<>> texts_;
};

class EachSample : public report::Sink {
 public:
  EachSample(report::Resolver& resolver, const std::function<bool(const CapturedSample&)>& each)
      : frames_(resolver), each_(&each) {}

  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    sample_.event = sample.event().name;
    sample_.comm = sample.comm;
    sample_.pid = sample.pid();
    sample_.tid = sample.tid();
    sample_.cpu = sample.event().attr.samples(format::abi::kSampleCpu) ? std::optional(sample.fields->cpu)
                                                                       : std::nullopt;
    sample_.time = sample.event().attr.samples(format::abi::kSampleTime) ? std::optional(sample.fields->time)
                                                                         : std::nullopt;
    sample_.period = sample.counted_period();
    sample_.stack.clear();
    if (sample.stack != nullptr)
      for (const report::LocationId location : sample.stack->frames) frames_.append(sample_.stack, location);
    else if (sample.location != nullptr)
      frames_.append(sample_.stack, *sample.location);
    return (*each_)(sample_) ? Flow::Continue : Flow::Stop;
  }

 private:
  FramesOfLocations frames_;
  const std::function<bool(const CapturedSample&)>* each_;
  CapturedSample sample_;
};

}  // namespace

struct Capture::State {
  report::Session session;
  bool is_read = false;
};

Capture::Capture(std::unique_ptr<State> state) : state_(std::move(state)) {}
Capture::~Capture() = default;

std::unique_ptr<Capture> Capture::open(const std::string& path, const CaptureOptions& options,
                                       std::string& error) {
  report::SessionOptions wanted;
  wanted.input = path;
  wanted.symbols.symfs = options.symfs;
  wanted.symbols.inlines = options.inlined ? symbolize::Inlines::All : symbolize::Inlines::No;
  auto session = report::Session::open(std::move(wanted));
  if (!session) {
    error = printable(session.error().what);
    return nullptr;
  }
  return std::unique_ptr<Capture>(new Capture(std::make_unique<State>(State{std::move(*session)})));
}

std::vector<std::string> Capture::events() const {
  std::vector<std::string> names;
  for (const format::Event& event : state_->session.events()) names.push_back(event.name);
  return names;
}

void Capture::read(const std::function<bool(const CapturedSample&)>& each) {
  if (std::exchange(state_->is_read, true)) return;
  EachSample sink(state_->session.resolver(), each);
  state_->session.run(sink);
  state_->session.report_missing_symbols();
}

std::vector<std::string> Capture::problems() const {
  std::vector<std::string> lines;
  for (const format::Finding& finding : state_->session.diagnostics().findings())
    lines.push_back(printable(format::Diagnostics::finding_text(finding)));
  return lines;
}

struct Profile::State {
  struct Sums {
    std::uint64_t samples = 0, self = 0, with_callees = 0;
    std::uint64_t last_sample = 0;  // the number of the last sample that was added, to count recursion once
  };
  std::map<std::pair<std::string, std::string>, Sums> rows;  // by function and module
  std::uint64_t total = 0, samples = 0;
};

Profile::Profile() : state_(std::make_unique<State>()) {}
Profile::~Profile() = default;

void Profile::add(const CapturedSample& sample) {
  state_->total += sample.period;
  const std::uint64_t number = ++state_->samples;
  bool is_leaf = true;
  for (const StackFrame& frame : sample.stack) {
    State::Sums& sums = state_->rows[{std::string(frame.function), std::string(frame.module)}];
    if (std::exchange(is_leaf, false)) {
      ++sums.samples;
      sums.self += sample.period;
    }
    if (std::exchange(sums.last_sample, number) != number) sums.with_callees += sample.period;
  }
}

std::uint64_t Profile::total() const { return state_->total; }
std::uint64_t Profile::samples() const { return state_->samples; }

std::vector<ProfileRow> Profile::rows() const {
  std::vector<ProfileRow> rows;
  for (const auto& [name, sums] : state_->rows)
    rows.push_back({name.first, name.second, sums.samples, sums.self, sums.with_callees});
  std::ranges::stable_sort(rows, [](const ProfileRow& a, const ProfileRow& b) {
    return std::pair(a.self, a.with_callees) > std::pair(b.self, b.with_callees);
  });
  return rows;
}

std::string printable(std::string_view name) { return format::printable(name); }

}  // namespace tacho
