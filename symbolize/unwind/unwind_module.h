// A module for unwinding: its file and its call frame rules by address.
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
#include "symbolize/jit/jit_code.h"
#include "tsl/robin_map.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/fde_index.h"

namespace tacho::symbolize {

using unwind::CfaRule;
using unwind::CfiForm;
using unwind::CfiSection;
using unwind::ElfImage;
using unwind::FdeRange;
using unwind::Rule;
using unwind::RuleKind;
using unwind::UnwindRow;

// Looks up call frame rules of a module by address, and caches functions.
class CfiTable {
 public:
  // From .eh_frame, with the sorted table in .eh_frame_hdr if there is one; or from .debug_frame. Nothing:
  // the file has no such section.
  static std::optional<CfiTable> from_eh_frame(const ElfImage& image);
  static std::optional<CfiTable> from_debug_frame(const ElfImage& image);
  // Of a 64-bit process.
  static CfiTable from_jit(const JitCode::Function& function);

  // The rules at an ELF address; null: no function covers it, or its rules are damaged. Evaluated at each
  // call; valid as long as the table.
  struct Found {
    const UnwindRow* row = nullptr;
    bool is_damaged = false;  // a function covers the address, but its rules are damaged
  };
  Found find_rules(std::uint64_t pc);

 private:
  CfiTable(ElfImage::Section section, CfiForm form, std::endian order, std::uint8_t address_size)
      : section_(std::move(section)), form_(form), order_(order), address_size_(address_size) {}
  CfiSection view() const { return {section_.bytes, section_.address, form_, order_, address_size_}; }
  std::optional<std::uint64_t> fde_offset(std::uint64_t pc);

  ElfImage::Section section_;
  CfiForm form_;
  std::endian order_;
  std::uint8_t address_size_;
  std::optional<unwind::FdeIndex> index_by_address_;
  std::optional<std::vector<FdeRange>> index_;  // made at the first look-up, if the file has no sorted table
  std::vector<std::unique_ptr<UnwindRow>> rows_;
};

// A mapped file for unwinding: its bytes and its call frame information.
class UnwindModule {
 public:
  // Opens nothing yet. All arguments must outlive the object.
  UnwindModule(const Module& module, const DebugFiles& files, const format::Features& features)
      : module_(module), files_(files), features_(features) {}

  // The file is not used from now on, and call chains end in the module.
  void disable(std::string reason) {
    missing_reason_ = std::move(reason);
    is_disabled_ = true;
  }

  // The module is a function of a jitdump. Its unwinding information is used instead of a file.
  void use_jit_function(const JitCode::Function& function);

  enum class CfiStatus : std::uint8_t {
    Found,       // the rules of the function at the address
    NoFunction,  // the file has call frame information, but not of this address
    Missing,     // there is no file, or it has no call frame information, or that is damaged
  };
  struct Found {
    CfiStatus status = CfiStatus::Missing;
    const UnwindRow* row = nullptr;  // valid until check_late_build_id() opens another file
  };
  // `offset`: of the address in the file; `address_size`: of the process, 4 or 8.
  Found find_rules(std::uint64_t offset, std::uint8_t address_size);
  // Reads a word of that size at a file offset.
  std::optional<std::uint64_t> word(std::uint64_t offset, std::uint8_t size);
  // Call it before each find_rules() and word(). If a pipe brought the module's build id after a file with
  // another id was opened, opens the file with the right id and frees the rows of the other; if there is
  // none, call chains end in the module.
  void check_late_build_id() {
    if (was_unsure_ && !module_.build_id.empty()) open_again();
  }
  // Why call chains end in it; empty: they do not.
  const std::string& missing_reason() const { return missing_reason_; }
  bool had_wrong_file() const { return had_wrong_file_; }
  const Module& module() const { return module_; }

 private:
  Result<ElfImage> open_image();
  Result<ElfImage> open_named();
  Result<ElfImage> open_pinned();
  Result<ElfImage> open_checked(const Candidate& candidate, const format::BuildId& wanted);
  Result<ElfImage> open_vdso();
  const ElfImage* image();
  void open_again();
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
  bool is_disabled_ = false;
  bool is_jit_ = false;
  bool is_named_ = false;        // the file with the module's name was opened
  bool was_unsure_ = false;      // that file was opened while the module's build id was unknown
  bool had_wrong_file_ = false;  // that file had another build id than the one that came later
  bool has_opened_tables_ = false, has_sought_debug_frame_ = false;
  std::string missing_reason_;
};

}  // namespace tacho::symbolize
