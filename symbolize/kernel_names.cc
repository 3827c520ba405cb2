#include "symbolize/kernel_names.h"

#include <utility>

#include "format/base/file.h"
#include "format/extensions/attachment.h"
#include "format/records/build_id.h"
#include "symbolize/files/attached_text.h"
#include "symbolize/files/debug_files.h"

namespace tacho::symbolize {
namespace {

constexpr std::string_view kRunningKallsyms = "/proc/kallsyms";
constexpr std::uint64_t kMostBefore = 64 << 10;  // bytes of a module before its first function

}  // namespace

bool KernelNames::runs_recorded_kernel() const {
  if (!options_->symfs.empty()) return false;
  const Mapping* const recorded = kernel_->text_mapping();
  if (recorded && !recorded->module->build_id.empty()) {
    const auto notes = format::read_file("/sys/kernel/notes", kLargestText);
    return notes && format::build_id_in_notes(*notes) == recorded->module->build_id;
  }
  return is_on_recording_host();
}

bool KernelNames::is_on_recording_host() const { return is_this_host(features_->environment); }

void KernelNames::expect() {
  const bool is_elsewhere = !options_->kallsyms.empty() || !options_->symfs.empty() ||
                            features_->attachment(format::kKallsymsAttachment) != nullptr;
  if (is_elsewhere || kallsyms_ || running_ || !is_on_recording_host()) return;
  running_.emplace(std::string(kRunningKallsyms), kLargestText);
}

Result<Kallsyms>& KernelNames::kallsyms() {
  if (!kallsyms_) kallsyms_ = read();
  return *kallsyms_;
}

Result<SymbolTable*> KernelNames::table_of(const Module& module) {
  Result<Kallsyms>& list = kallsyms();
  if (!list) return list.error();
  if (module.kind == ModuleKind::Kernel) return &list->kernel();
  SymbolTable* const table = list->module(module.short_name);
  if (!table) return Error{"kallsyms has no symbols of it"};
  const auto functions = list->module_functions(module.short_name);
  if (functions.empty()) return table;
  // A module's code begins with its first function, or little before it.
  const Mapping* const there = kernel_->find({functions.front()});
  if (there != nullptr && there->module == &module && functions.front() - there->start < kMostBefore)
    return table;
  return Error{"kallsyms has it at other addresses, as in another boot"};
}

Result<Kallsyms> KernelNames::read() {
  std::optional<ReferenceSymbol> reference;
  const auto& text = kernel_->text();
  if (text && !text->reference_symbol.empty())
    reference = ReferenceSymbol{text->reference_symbol, text->reference_address, text->end};
  const auto parse = [&](Result<std::vector<std::byte>> content,
                         const std::string& place) -> Result<Kallsyms> {
    if (!content) return std::move(content.error());
    auto parsed = Kallsyms::parse(std::move(*content), reference);
    return parsed ? std::move(parsed) : Result<Kallsyms>(std::move(parsed.error()).in(place));
  };
  if (!options_->kallsyms.empty())
    return parse(format::read_file(options_->kallsyms, kLargestText), options_->kallsyms);
  if (const auto* attached = features_->attachment(format::kKallsymsAttachment)) {
    if (reference) reference->is_of_same_boot = true;
    return parse(unpack_attached_text(*attached), "the attached kallsyms");
  }
  if (runs_recorded_kernel()) {
    if (!running_) running_.emplace(std::string(kRunningKallsyms), kLargestText);
    std::optional<Error> unread;
    auto parsed = Kallsyms::parse(
        [&]() -> Result<std::vector<std::byte>> {
          auto piece = running_->next();
          if (!piece) unread = piece.error();
          return piece;
        },
        reference);
    running_.reset();
    if (unread) return *unread;
    return parsed ? std::move(parsed)
                  : Result<Kallsyms>(std::move(parsed.error()).in(std::string(kRunningKallsyms)));
  }
  return Error{"no kallsyms in the capture; give the recorded kernel's with --kallsyms FILE"};
}

}  // namespace tacho::symbolize
