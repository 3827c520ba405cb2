// A mapped file for unwinding, and its call frame rules by address.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "symbolize/address_space.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/frame.h"
#include "tsl/robin_map.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/fde_index.h"

namespace tacho::symbolize {

// Looks up call frame rules of a module by address, and caches functions.

using unwind::CfaRule;
using unwind::CfiForm;
using unwind::CfiSection;
using unwind::ElfImage;
using unwind::FdeRange;
using unwind::Rule;
using unwind::RuleKind;
using unwind::UnwindRow;

class CfiTable {
 public:
  // From .eh_frame, through the sorted table in .eh_frame_hdr when that is there; or from .debug_frame.
  // Nothing when the file has no such section.
  static std::optional<CfiTable> from_eh_frame(const ElfImage& image);
  static std::optional<CfiTable> from_debug_frame(const ElfImage& image);

  // The rules at an ELF address; null when no function covers it or its program is damaged. They are
  // evaluated anew at each call, and live as long as the table.
  struct Found {
    const UnwindRow* row = nullptr;
    bool is_damaged = false;  // a function covers the address, but its rules cannot be read
  };
  Found find(std::uint64_t pc);

 private:
  CfiTable(ElfImage::Section section, CfiForm form, const ElfImage& image);
  CfiSection view() const { return {section_.bytes, section_.address, form_, order_, address_size_}; }
  std::optional<std::uint64_t> fde_offset(std::uint64_t pc);

  ElfImage::Section section_;
  CfiForm form_;
  std::endian order_;
  std::uint8_t address_size_;
  std::optional<unwind::FdeIndex> index_by_address_;
  std::optional<std::vector<FdeRange>> index_;  // when there is none of the file: made at the first question
  std::vector<std::unique_ptr<UnwindRow>> rows_;
};

// A mapped file for unwinding: its bytes and its call frame information.

class UnwindModule {
 public:
  // Opens nothing yet. All arguments must outlive the object.
  UnwindModule(const Module& module, const DebugFiles& files, const format::Features& features)
      : module_(module), files_(files), features_(features) {}

  // From here on the file is not to be read.
  void leave_out(std::string reason) {
    lack_ = std::move(reason);
    is_left_out_ = true;
  }

  enum class Knowledge : std::uint8_t {
    Rules,       // of the function at the address
    NoFunction,  // the file describes its functions, but none is at the address
    Nothing,     // no file, no information in it, or damaged
  };
  struct Found {
    Knowledge knowledge = Knowledge::Nothing;
    const UnwindRow* row = nullptr;  // as long as the module
  };
  // `offset` is the address's place in the file, `address_size` the process's, 4 or 8.
  Found find(std::uint64_t offset, std::uint8_t address_size);
  // The address of that size at a file offset.
  std::optional<std::uint64_t> word(std::uint64_t offset, std::uint8_t size);
  // Whether its build id came when its file was open, and is that of another. Asked before find(). From then
  // on the module is what it would have been with the id: call chains end in it, unless there is a file that
  // has the id.
  bool is_another_by_now() { return was_unsure_ && !module_.build_id.empty() && open_again(); }
  // Why call chains end in it; empty when they need not.
  const std::string& lack() const { return lack_; }
  bool was_another() const { return was_another_; }
  const Module& module() const { return module_; }

 private:
  Result<ElfImage> open_image();
  Result<ElfImage> open_named();
  Result<ElfImage> open_pinned();
  Result<ElfImage> open_checked(const Candidate& candidate, const format::BuildId& wanted);
  Result<ElfImage> open_vdso();
  const ElfImage* image();
  bool open_again();
  void open_tables();
  std::optional<CfiTable> find_debug_frame();
  std::optional<CfiTable> debug_frame_beside(const format::BuildId& id, const std::string& debuglink);
  CfiTable* debug_frame();
  Found look_up(std::uint64_t offset);

  const Module& module_;
  const DebugFiles& files_;
  const format::Features& features_;
  std::optional<Result<ElfImage>> image_;
  std::optional<CfiTable> eh_frame_, debug_frame_;
  tsl::robin_map<std::uint64_t, Found> known_;  // by offset
  bool is_left_out_ = false;
  bool is_named_ = false;     // the file that has its name now is the one
  bool was_unsure_ = false;   // the file was opened by its name alone
  bool was_another_ = false;  // and had another id than the one that came later
  bool has_opened_tables_ = false, has_sought_debug_frame_ = false;
  std::string lack_;
};

}  // namespace tacho::symbolize
