#include "symbolize/kernel_names.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "format/base/file.h"
#include "format/extensions/attachment.h"
#include "format/records/build_id.h"
#include "symbolize/files/build_id_match.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/files/decompress.h"

namespace tacho::symbolize {
namespace {

constexpr const char* kRunningKallsyms = "/proc/kallsyms";

// Adds the name of the list to an error.
Result<Kallsyms> named(Result<Kallsyms> parsed, std::string_view name) {
  return parsed ? std::move(parsed) : Result<Kallsyms>(std::move(parsed.error()).in(name));
}

}  // namespace

BackgroundReader::BackgroundReader(std::string path, std::uint64_t limit)
    : path_(std::move(path)), limit_(limit) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { read_pieces(stop); });
  } catch (const std::system_error&) {
    thread_ = {};
  }
}

// Ends early when it is stopped, since no caller waits for the rest.
void BackgroundReader::read_pieces(const std::stop_token& stop) {
  constexpr std::size_t kPiece = std::size_t{256} << 10;  // bytes
  auto file = format::open_input(path_);
  if (!file) return end_pieces(std::move(file.error()));
  std::vector<std::byte> buffer(kPiece);
  std::uint64_t all = 0;
  for (std::size_t filled = 0; !stop.stop_requested();) {
    const ssize_t count = ::read(file->get(), buffer.data() + filled, buffer.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return end_pieces(system_error(path_, errno));
    filled += static_cast<std::size_t>(count);
    all += static_cast<std::uint64_t>(count);
    if (all > limit_) {
      return end_pieces(Error{path_ + ": larger than the " + std::to_string(limit_) +
                              " bytes that are read of such a file"});
    }
    const bool is_end = count == 0;
    if (filled == buffer.size() || (is_end && filled > 0)) {
      put_piece(Content(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(filled)));
      filled = 0;
    }
    if (is_end) return end_pieces(Done{});
  }
}

void BackgroundReader::put_piece(Content piece) {
  const std::lock_guard lock(mutex_);
  pieces_.push_back(std::move(piece));
  changed_.notify_one();
}

void BackgroundReader::end_pieces(Result<> outcome) {
  const std::lock_guard lock(mutex_);
  outcome_ = std::move(outcome);
  has_ended_ = true;
  changed_.notify_one();
}

Result<BackgroundReader::Content> BackgroundReader::next_piece() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    if (std::exchange(has_ended_, true)) return Content();
    return format::read_file(path_, limit_);
  }
  changed_.wait(lock, [this] { return !pieces_.empty() || has_ended_; });
  if (pieces_.empty()) {
    if (!outcome_) return std::move(outcome_.error());
    return Content();
  }
  Content piece = std::move(pieces_.front());
  pieces_.pop_front();
  return piece;
}

bool KernelNames::runs_recorded_kernel() const {
  if (!options_->symfs.empty()) return false;
  const Mapping* const recorded = kernel_->text_mapping();
  if (recorded && !recorded->module->build_id.empty()) {
    const auto notes = format::read_file("/sys/kernel/notes", kLargestText);
    return notes && match_build_ids(format::build_id_in_notes(*notes).value_or(format::BuildId{}),
                                    recorded->module->build_id) == BuildIdMatch::Same;
  }
  return is_this_host(features_->environment);
}

void KernelNames::start_reading() {
  const bool is_elsewhere = !options_->kallsyms.empty() || !options_->symfs.empty() ||
                            features_->attachment(format::kKallsymsAttachment) != nullptr;
  if (is_elsewhere || kallsyms_ || running_ || !is_this_host(features_->environment)) return;
  running_.emplace(kRunningKallsyms, kLargestText);
}

Result<Kallsyms>& KernelNames::kallsyms() {
  if (!kallsyms_) kallsyms_ = read_kallsyms();
  return *kallsyms_;
}

Result<SymbolTable*> KernelNames::table_of(const Module& module) {
  constexpr std::uint64_t kLargestStart = 64 << 10;  // bytes from the module's start to its first function
  Result<Kallsyms>& list = kallsyms();
  if (!list) return list.error();
  if (module.kind == ModuleKind::Kernel) return &list->kernel();
  SymbolTable* const table = list->module(module.short_name);
  if (!table) return Error{"kallsyms has no symbols of it"};
  const auto functions = list->module_functions(module.short_name);
  if (functions.empty()) return table;
  // A module starts at its first function, or a little before it.
  const Mapping* const there = kernel_->find_mapping({functions.front()});
  if (there != nullptr && there->module == &module && functions.front() - there->start < kLargestStart)
    return table;
  return Error{"kallsyms has it at other addresses (of another boot)"};
}

Result<Kallsyms> KernelNames::read_kallsyms() {
  std::optional<ReferenceSymbol> reference;
  const auto& text = kernel_->text();
  if (text && !text->reference_symbol.empty())
    reference = ReferenceSymbol{text->reference_symbol, text->reference_address, text->end};
  const auto parse = [&](Result<std::vector<std::byte>> content, std::string_view name) -> Result<Kallsyms> {
    if (!content) return std::move(content.error());
    return named(Kallsyms::parse(std::move(*content), reference), name);
  };
  if (!options_->kallsyms.empty())
    return parse(format::read_file(options_->kallsyms, kLargestText), options_->kallsyms);
  if (const auto* attached = features_->attachment(format::kKallsymsAttachment)) {
    if (reference) reference->is_of_same_boot = true;
    return parse(unpack_attached_text(*attached), "the attached kallsyms");
  }
  if (runs_recorded_kernel()) {
    if (!running_) running_.emplace(kRunningKallsyms, kLargestText);
    std::optional<Error> unread;
    auto parsed = Kallsyms::parse(
        [&]() -> Result<std::vector<std::byte>> {
          auto piece = running_->next_piece();
          if (!piece) unread = piece.error();
          return piece;
        },
        reference);
    running_.reset();
    if (unread) return *unread;
    return named(std::move(parsed), kRunningKallsyms);
  }
  return Error{"no kallsyms in the capture; give the recorded kernel's with --kallsyms FILE"};
}

}  // namespace tacho::symbolize
