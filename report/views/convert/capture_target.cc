#include "report/views/convert/capture_target.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "format/container/growing_file.h"
#include "report/output/terminal.h"

namespace tacho::report {
namespace {

// The usual message of a program that writes to a closed pipe.
Result<> done_or_gone(const Result<OutputFile::Reader>& reader) {
  if (reader && *reader == OutputFile::Reader::There) return Done{};
  const int code = reader ? EPIPE : reader.error().code;
  return output_error(system_error("write", code).what, code);
}

}  // namespace

Result<CaptureTarget> CaptureTarget::open(TargetOptions options) {
  CaptureTarget target(std::move(options));
  const TargetOptions& wish = target.options_;
  if (wish.output == "-") return target;
  std::error_code ignored;
  auto path = wish.replaces_input ? std::filesystem::canonical(wish.input, ignored)
                                  : std::filesystem::path(wish.output);
  if (path.empty()) path = wish.input;
  using Old = format::WholeOutput::Old;
  auto file = format::WholeOutput::create(path, wish.replaces_input ? Old::Replaced : Old::Kept);
  if (!file) return std::move(file.error());
  target.file_.emplace(std::move(*file));
  if (target.file_->has_temporary_name()) target.not_stopped_ = std::make_unique<NoStopping>();
  // A file that is named while it grows is marked for --follow here, since the sandboxed child may not do so.
  if (auto mark = target.file_->duplicate(); mark && !wish.is_whole_or_nothing)
    format::hold_for_writing(mark->get());
  return target;
}

Result<> CaptureTarget::begin() {
  if (!file_ || options_.is_whole_or_nothing) return Done{};
  if (auto named = file_->finish(); !named) return named;
  if (not_stopped_) not_stopped_->let_stop();
  return Done{};
}

Result<> CaptureTarget::make_empty() {
  if (!file_) return Done{};
  const auto file = file_->duplicate();
  if (!file) return file.error();
  if (::ftruncate(file->get(), 0) == 0 && ::lseek(file->get(), 0, SEEK_SET) == 0) return Done{};
  return output_error(system_error(options_.output, errno).what, errno);
}

Result<> CaptureTarget::finish() {
  if (!file_ || !options_.is_whole_or_nothing) return Done{};
  if (options_.input_state)
    if (auto same = options_.input_state->check_same(options_.input); !same) return same;
  return file_->finish();
}

CaptureOutput CaptureTarget::here() {
  CaptureOutput output;
  output.begin = [this]() -> Result<format::Fd> {
    if (auto begun = begin(); !begun) return std::move(begun.error());
    return file_ ? file_->duplicate() : Result<format::Fd>(format::Fd());
  };
  output.write = [](format::Bytes bytes) {
    return done_or_gone(OutputFile(STDOUT_FILENO).write(format::as_text(bytes)));
  };
  output.finish = [this] { return finish(); };
  return output;
}

CaptureOutput CaptureTarget::in_worker(sandbox::Child& child) {
  CaptureOutput output;
  output.begin = [this, &child]() -> Result<format::Fd> {
    elsewhere_.emplace(child.open_output());
    return file_ ? file_->duplicate() : Result<format::Fd>(format::Fd());
  };
  output.write = [this](format::Bytes bytes) {
    return done_or_gone(elsewhere_->write(format::as_text(bytes)));
  };
  output.finish = [this] { return elsewhere_->finish(); };
  return output;
}

void CaptureTarget::prepare(sandbox::Task& task) {
  task.input = options_.input;
  task.policy = sandbox::Policy::WriteOutput;
  task.is_whole_or_nothing = options_.is_whole_or_nothing;
  if (!file_) {
    task.open_output = [] { return output_of(OutputFile(STDOUT_FILENO)); };
    return;
  }
  task.kept = {file_->descriptor()};
  task.restart = [this] { return make_empty(); };
  task.open_output = [this]() -> Result<sandbox::Output> {
    if (auto begun = begin(); !begun) return std::move(begun.error());
    return sandbox::Output{.write = [](std::string_view) -> Result<OutputFile::Reader> {
                             return Error{"the process that makes the capture writes to what it has not"};
                           },
                           .finish = [this] { return finish(); },
                           .is_reader_gone = [] { return false; }};
  };
}

Result<cli::ExitStatus> make_capture(const Making& making, const Make& make) {
  auto target = CaptureTarget::open(making.target);
  if (!target) return std::move(target.error());
  const auto here = [&] { return make(target->here(), nullptr); };
  if (!making.has_worker) return here();
  sandbox::Task task;
  target->prepare(task);
  task.can_restart = making.can_restart;
  task.is_asked_to_stop = making.is_asked_to_stop;
  task.times = making.times;
  const off_t start = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  task.show_progress = progress_lines();
  task.work = [&](sandbox::Child& child) {
    if (making.target.input == "-" && start >= 0) (void)::lseek(STDIN_FILENO, start, SEEK_SET);
    return make(target->in_worker(child), &child);
  };
  return sandbox::run_view_or(task, here);
}

}  // namespace tacho::report
