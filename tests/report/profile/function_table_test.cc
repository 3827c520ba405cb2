#include "report/profile/function_table.h"

#include <gtest/gtest.h>

#include <memory>

#include "report/profile/frame_names.h"
#include "report/profile/function.h"
#include "report/profile/named_rows.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {

namespace {

namespace abi = format::abi;
using test::CaptureBuilder;
using test::SampleFields;

constexpr std::uint64_t kKernelModule = 0xffffffff81000000;

format::Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class Stacks : public Sink {
 public:
  Flow on_sample(const ResolvedSample& sample) override {
    if (sample.stack != nullptr)
      frames.insert(frames.end(), sample.stack->frames.begin(), sample.stack->frames.end());
    locations.push_back(sample.location->id);
    stacks.push_back(sample.stack);
    return Flow::Continue;
  }
  std::vector<LocationId> frames, locations;  // of all samples
  std::vector<const Stack*> stacks;
};

// A capture that was run: kernel functions alpha and beta, and two processes with two libraries of the same
// name that have no symbols.
struct Ran {
  explicit Ran(const std::vector<SampleFields>& samples)
      : kallsyms(bytes_of("ffffffff81000000 T _text\nffffffff81000000 T alpha\nffffffff81000100 T beta\n"
                          "ffffffff81000200 T _etext\n")) {
    CaptureBuilder capture;
    capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
    capture.mmap(~0U, kKernelModule, 0x1000, kKernelModule, "[kernel.kallsyms]_text", abi::kCpumodeKernel);
    capture.mmap(5, 0x1000, 0x1000, 0, "/nonexistent/one/libx.so")
        .mmap(6, 0x5000, 0x1000, 0, "/nonexistent/two/libx.so");
    capture.mmap(7, 0x9000, 0x1000, 0, "/nonexistent/one/libx.so");
    capture.mmap(7, 0xb000, 0x1000, 0, "/nonexistent/one/libx.so");
    for (const SampleFields& fields : samples) capture.sample(fields);
    const test::TemporaryFile file(capture.file());
    SessionOptions options;
    options.input = file.path();
    options.symbols.kallsyms = kallsyms.path();
    options.keeps_addresses = true;
    auto opened = Session::open(options);
    EXPECT_TRUE(opened);
    session = std::make_unique<Session>(std::move(*opened));
    session->run(sink);
  }
  test::TemporaryFile kallsyms;
  Stacks sink;
  std::unique_ptr<Session> session;
};

SampleFields kernel_sample(std::vector<std::uint64_t> chain) {
  SampleFields fields;
  fields.id = 1;
  fields.pid = fields.tid = 5;
  fields.time = 10;
  fields.ip = chain[0];
  fields.misc = abi::kCpumodeKernel;
  fields.callchain = std::move(chain);
  fields.callchain.insert(fields.callchain.begin(), abi::kContextKernel);
  return fields;
}

SampleFields user_sample(std::uint32_t pid, std::uint64_t ip) {
  SampleFields fields;
  fields.id = 1;
  fields.pid = fields.tid = pid;
  fields.time = 20;
  fields.ip = ip;
  fields.callchain = {abi::kContextUser, ip};
  return fields;
}

std::vector<FunctionId> chain_of(FunctionTable& table, const Stack& stack) {
  std::vector<FunctionId> ids;
  for (const LocationId location : stack.frames) ids.push_back(table.of_frame(location)[0]);
  return ids;
}

TEST(FunctionTable, LocationsOfOneFunctionAreOneFunction) {
  const Ran ran({kernel_sample({kKernelModule + 0x10, kKernelModule + 0x110, kKernelModule + 0x20})});
  ASSERT_EQ(ran.sink.frames.size(), 3u);
  FunctionTable table(*ran.session);
  ASSERT_EQ(table.of_frame(ran.sink.frames[0]).size(), 1u);
  const FunctionId first = table.of_frame(ran.sink.frames[0])[0];
  const FunctionId second = table.of_frame(ran.sink.frames[1])[0];
  const FunctionId third = table.of_frame(ran.sink.frames[2])[0];
  EXPECT_EQ(first, third);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.of_location(ran.sink.locations[0]), first);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table[first].name(), "alpha");
  EXPECT_EQ(table[second].name(), "beta");
  EXPECT_EQ(table[second].start, kKernelModule + 0x100);
  EXPECT_EQ(table[first].level, 'k');
  EXPECT_EQ(table[first].source, 'k');
}

TEST(FunctionTable, WithTheKeyAddressEachLocationIsOfItsOwn) {
  const Ran ran({kernel_sample({kKernelModule + 0x10, kKernelModule + 0x20})});
  FunctionTable table(*ran.session, ChainKey::Address);
  const Function& one = table[table.of_frame(ran.sink.frames[0])[0]];
  const Function& two = table[table.of_frame(ran.sink.frames[1])[0]];
  EXPECT_NE(one.chain_key, two.chain_key);
  EXPECT_EQ(one.symbol, two.symbol) << "a row of --sort sym is the function all the same";
}

// A chain's unknown frame is known by the address that was sampled, a sample's own location by that in its
// module: perf's report shows both.
TEST(FunctionTable, AnUnknownLocationIsItsAddress) {
  const Ran ran({user_sample(5, 0x1234), user_sample(6, 0x5234), user_sample(7, 0x9234)});
  ASSERT_EQ(ran.sink.frames.size(), 3u);
  FunctionTable table(*ran.session);
  const Function& chain = table[table.of_frame(ran.sink.frames[0])[0]];
  EXPECT_TRUE(chain.name().empty());
  EXPECT_EQ(chain.start, 0x1234u);
  const Function& alone = table[table.of_location(ran.sink.locations[0])];
  EXPECT_EQ(alone.start, 0x234u);
  const Function& other_module = table[table.of_location(ran.sink.locations[1])];
  EXPECT_EQ(other_module.start, 0x234u);
  EXPECT_NE(alone.module, other_module.module);
  EXPECT_EQ(alone.module_number, other_module.module_number) << "a row of --sort dso goes by the short name";
  EXPECT_EQ(alone.symbol, other_module.symbol) << "a row of --sort sym goes by the address alone";
  EXPECT_NE(alone.chain_key, other_module.chain_key);
  EXPECT_EQ(table.of_location(ran.sink.locations[2]), table.of_location(ran.sink.locations[0]))
      << "one module, mapped at two addresses";
  EXPECT_EQ(table[chain_of(table, *ran.sink.stacks[0])[0]].start, 0x1234u);
  EXPECT_EQ(table[chain_of(table, *ran.sink.stacks[2])[0]].start, 0x9234u)
      << "the same location in another process";
}

TEST(FunctionTable, AFileMappedTwiceInAProcessHasTwoLocations) {
  const Ran ran({user_sample(7, 0x9234), user_sample(7, 0xb234), user_sample(7, 0x9234)});
  FunctionTable table(*ran.session);
  std::vector<std::uint64_t> starts;
  for (const Stack* stack : ran.sink.stacks) starts.push_back(table[chain_of(table, *stack)[0]].start);
  EXPECT_EQ(starts, (std::vector<std::uint64_t>{0x9234, 0xb234, 0x9234}));
}

TEST(FunctionTable, AKnownFunctionIsTheSameInEveryProcess) {
  SampleFields other = kernel_sample({kKernelModule + 0x10});
  other.pid = other.tid = 6;
  const Ran ran({kernel_sample({kKernelModule + 0x18}), other});
  FunctionTable table(*ran.session);
  EXPECT_EQ(chain_of(table, *ran.sink.stacks[0]), chain_of(table, *ran.sink.stacks[1]));
}

TEST(FunctionTable, WhereNothingIsMappedThereIsNoModule) {
  const Ran ran({user_sample(5, 0x77777)});
  FunctionTable table(*ran.session);
  const Function& function = table[table.of_frame(ran.sink.frames[0])[0]];
  EXPECT_EQ(function.module, nullptr);
  EXPECT_EQ(function.module_number, 0u);
  EXPECT_EQ(function.name_id, kNo<NameId>);
  EXPECT_EQ(function.start, 0x77777u);
  EXPECT_EQ(function.level, '.');
}

std::vector<std::string> names_of(const FunctionTable& table, std::span<const FunctionId> ids) {
  std::vector<std::string> names;
  for (const FunctionId id : ids) names.emplace_back(table[id].name());
  return names;
}

TEST(FunctionStacks, ChainsThroughTheSameFunctionsAreOne) {
  const Ran ran({kernel_sample({kKernelModule + 0x10, kKernelModule + 0x110}),
                 kernel_sample({kKernelModule + 0x20, kKernelModule + 0x130}),
                 kernel_sample({kKernelModule + 0x110, kKernelModule + 0x10})});
  FunctionTable table(*ran.session);
  FunctionStacks stacks(table, {});
  const auto chain = [&](std::size_t i) { return stacks.chain_of(*ran.sink.stacks[i]); };
  const ChainId first{0}, second{1};
  EXPECT_EQ(chain(0), first);
  EXPECT_EQ(chain(1), first);
  EXPECT_EQ(chain(2), second);
  EXPECT_EQ(chain(0), first) << "asked again";
  EXPECT_EQ(stacks.size(), 2u);
  EXPECT_EQ(names_of(table, stacks.frames(first)), (std::vector<std::string>{"alpha", "beta"}));
}

TEST(FunctionStacks, MayBeginWithTheCallerAndHideUnknownFrames) {
  SampleFields fields = kernel_sample({kKernelModule + 0x10, kKernelModule + 0x110});
  fields.callchain.insert(fields.callchain.end(), {abi::kContextUser, 0x1234});
  const Ran ran({fields});
  FunctionTable table(*ran.session);
  FunctionStacks all(table, {.order = ChainOrder::Caller});
  EXPECT_EQ(names_of(table, all.frames(all.chain_of(*ran.sink.stacks[0]))),
            (std::vector<std::string>{"", "beta", "alpha"}));
  FunctionStacks known(table, {.order = ChainOrder::Caller, .hides_unknown = true});
  EXPECT_EQ(names_of(table, known.frames(known.chain_of(*ran.sink.stacks[0]))),
            (std::vector<std::string>{"beta", "alpha"}));
}

}  // namespace

namespace {

std::string fold(std::string_view function, std::string_view path, symbolize::ModuleKind kind,
                 FrameMarks marks = {}) {
  symbolize::Module module;
  module.path = path;
  module.kind = kind;
  symbolize::Frame frame;
  frame.module = &module;
  frame.function = function;
  frame.shown_address = 0x891f5;
  return name_of_frame(frame, marks);
}

TEST(NameOfFrame, NamesAreWhole) {
  using enum symbolize::ModuleKind;
  for (const std::string_view name :
       {"(anonymous namespace)::run", "f::operator()", "f::operator->",
        "core::ops::FnOnce::call_once<fn(&str) -> u8>", "a'b", "RegExp:^(a|b)$", "(paren)", "name->arrow",
        "it's \"quoted\"", "py::f:/srv/a.py;x", "Lcom/example/Main;::work(I)V", "a+0x10"}) {
    EXPECT_EQ(fold(name, "/x", User), name);
    EXPECT_EQ(fold(name, "/tmp/perf-12.map", User), name) << "a JIT compiler's";
  }
}

TEST(NameOfFrame, CodeWithoutANameIsItsModules) {
  using enum symbolize::ModuleKind;
  EXPECT_EQ(fold("", "/usr/lib/libc.so.6", User), "[libc.so.6]");
  EXPECT_EQ(fold("", "/tmp/prog (deleted)", User), "[prog]");
  EXPECT_EQ(fold("", "[vdso]", Vdso), "[vdso]");
  EXPECT_EQ(fold("", "/x/a.so", User, {.addresses = true}), "[a.so <891f5>]");
}

TEST(NameOfFrame, MarksByTheModulesKind) {
  using enum symbolize::ModuleKind;
  const FrameMarks all{.kernel = true, .jit = true};
  EXPECT_EQ(fold("schedule", "[kernel.kallsyms]", Kernel, all), "schedule_[k]");
  EXPECT_EQ(fold("read", "[vdso]", Vdso, all), "read") << "code of the process";
  EXPECT_EQ(fold("run", "/tmp/perf-12.map", User, all), "run_[j]");
}

}  // namespace

}  // namespace tacho::report
