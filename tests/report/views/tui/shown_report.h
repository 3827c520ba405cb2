// A view over a small made capture, for tests of what keys do.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/views/report/command_report.h"
#include "report/views/report/report_options.h"
#include "report/views/report/report_sink.h"
#include "report/views/tui/report_view.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {

namespace abi = format::abi;
using test::CaptureBuilder;
using test::SampleFields;

inline constexpr std::uint64_t kKernel = 0xffffffff81000000;

// Two threads in functions f0 to f3 of a kernel: f0 calls f1 calls f2, f0 calls f3. And of another event a
// sample in f3, where there are `events` of 2. A second process has the second thread and a sample in a
// program.
struct ShownReport {
  explicit ShownReport(std::string sort = {}, unsigned events = 1, std::uint32_t second_process = 1)
      : kallsyms(std::as_bytes(std::span(text))) {
    options.columns.sort = std::move(sort);
    CaptureBuilder capture;
    capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
    if (events == 2)
      capture.event(test::software_event(abi::kPageFaults, abi::kSampleCallchain), "page-faults", {2});
    capture.comm(1, 1, "one").comm(second_process, 2, "two");
    capture.mmap(~0U, kKernel, 0x1000, kKernel, "[kernel.kallsyms]_text", abi::kCpumodeKernel);
    std::uint64_t time = 10;
    const auto add = [&](std::uint32_t tid, std::initializer_list<std::uint64_t> functions,
                         std::uint64_t period, std::uint64_t event = 1) {
      SampleFields fields;
      fields.id = event;
      fields.pid = tid == 1 ? 1 : second_process;
      fields.tid = tid;
      fields.time = ++time;
      fields.period = period;
      fields.misc = abi::kCpumodeKernel;
      fields.callchain = {abi::kContextKernel};
      for (const std::uint64_t function : functions)
        fields.callchain.push_back(kKernel + function * 0x100 + 8);
      fields.ip = fields.callchain[1];
      capture.sample(fields, event - 1);
    };
    for (int i = 0; i < 6; ++i) add(1, {2, 1, 0}, 10);
    for (int i = 0; i < 3; ++i) add(2, {3, 0}, 10);
    add(2, {1, 0}, 10);
    if (events == 2) add(2, {3, 0}, 1, 2);
    if (second_process != 1) {
      SampleFields fields;
      fields.id = 1;
      fields.pid = second_process;
      fields.tid = 2;
      fields.time = ++time;
      fields.period = 10;
      fields.misc = abi::kCpumodeUser;
      fields.ip = 0x1234;
      fields.callchain = {abi::kContextUser, fields.ip};
      capture.sample(fields, 0);
    }
    file.emplace(capture.file());
    options.reading.session.input = file->path();
    options.reading.session.symbols.kallsyms = kallsyms.path();
    options.view.is_interactive = true;
    EXPECT_TRUE(prepare_report(options));
    session = std::make_unique<Session>(std::move(*Session::open(options.reading.session)));
    sink = std::make_unique<ReportSink>(*session, options, false);
    hits = std::make_unique<CodeHits>(events);
    EXPECT_TRUE(sink->arrange());
    session->run(*sink);
    table = &sink->finish();
    view = std::make_unique<ReportView>(*table, options, *hits);
    view->readings(&again);
    view->begin_with_events();
  }
  ReportView::Flow press(Key key) { return view->on_key({.key = key, .size = {}}); }
  ReportView::Flow type(std::string_view keys) {
    auto flow = ReportView::Flow::Stay;
    for (const char key : keys) flow = press(static_cast<Key>(key));
    return flow;
  }
  std::vector<std::string> lines(ScreenSize size = {120, 24}) {
    const Frame frame = view->draw(size);
    std::vector<std::string> lines;
    for (const FrameRow& row : frame.rows) lines.push_back(text_of(row));
    return lines;
  }
  // The line that is selected; empty: none is.
  std::string selected() {
    const Frame frame = view->draw({120, 24});
    for (const FrameRow& row : frame.rows)
      if (row.is_selected) return text_of(row);
    return {};
  }
  bool shows(std::string_view what) {
    for (const std::string& line : lines())
      if (line.find(what) != std::string::npos) return true;
    return false;
  }

  // Readings of the same capture, which is its own base too.
  struct Again : CaptureReadings {
    explicit Again(ShownReport& shown) : of(shown) {}
    Result<Session> open_session(const std::function<void(SessionOptions&)>& change) override {
      SessionOptions wanted = of.options.reading.session;
      change(wanted);
      return Session::open(wanted);
    }
    bool run_session(Session& session, Sink& to) override {
      session.run(to);
      return true;
    }
    Result<const ReportTable*> base(const std::string& path, const std::string&) override {
      if (path == "nowhere") return Error{"nowhere: No such file or directory"};
      return of.table;
    }
    const std::string& base_name() const override { return of.options.reading.session.input; }
    Result<const RenamedFunctions*> renames() override { return &renamed; }
    const std::string& input() const override { return of.options.reading.session.input; }
    std::vector<std::string> captures() const override { return {"after.data", "nowhere"}; }
    Result<> change_to(const std::string& path) override {
      if (path == "nowhere") return Error{"nowhere: No such file or directory"};
      changed_to = path;
      return Done{};
    }
    std::string changed_to;
    RenamedFunctions renamed;
    ShownReport& of;
  };

  std::string text =
      "ffffffff81000000 T _text\nffffffff81000000 T f0\nffffffff81000100 T f1\nffffffff81000200 T f2\n"
      "ffffffff81000300 T f3\nffffffff81000900 T _etext\n";
  test::TemporaryFile kallsyms;
  std::optional<test::TemporaryFile> file;
  ReportOptions options;
  std::unique_ptr<Session> session;
  std::unique_ptr<ReportSink> sink;
  const ReportTable* table = nullptr;  // of the sink
  std::unique_ptr<CodeHits> hits;
  Again again{*this};
  std::unique_ptr<ReportView> view;
};

}  // namespace tacho::report
