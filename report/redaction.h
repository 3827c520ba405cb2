// What is taken out of a capture, class by class, and how.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "format/base/result.h"
#include "format/container/capture_reader.h"
#include "format/container/content_classes.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/aliases.h"

namespace tacho::report {

// Undoes KASLR: the kernel's address in memory is private: its addresses are moved to where
// they would be without it. Distances within the kernel's image, and among its modules and BPF programs,
// stay.

class KernelPlaces {
 public:
  // The kernel's mapping says where its text begins.
  void see_text(std::uint64_t start);
  // Any address of kernel code: modules are moved by the lowest.
  void see_code(std::uint64_t address);

  bool is_known() const { return text() != 0; }
  // An address of the kernel's image or modules, moved; any other as it is.
  std::uint64_t moved(std::uint64_t address) const;
  // Whether it is inside the known range of the image or the modules, also when they are not moved at all.
  bool is_code(std::uint64_t address) const { return place_of(address).has_value(); }
  // An address of the kernel's half: code is moved, and pointers to kernel memory, which would reveal its
  // address too, get an alias.
  std::uint64_t hidden(std::uint64_t address, const Aliases& aliases) const;
  // A text with such addresses in it, of 16 hexadecimal digits: "mem:0xffffffff9a601234/8:rw".
  std::string hidden_in(std::string_view text, const Aliases& aliases) const;

 private:
  // x86-64: the image is between these, by a multiple of 2 MB; modules above, up to the fixed mappings.
  static constexpr std::uint64_t kImages = 0xffffffff80000000, kUsualText = 0xffffffff81000000,
                                 kModules = 0xffffffffc0000000, kModulesEnd = 0xffffffffff000000;
  // Elsewhere image and modules are within this distance, and move together.
  static constexpr std::uint64_t kNear = std::uint64_t{4} << 30, kOtherText = 0xffff800080000000;
  std::uint64_t text() const;
  // Where an address of image or modules is moved to; nothing for others.
  std::optional<std::uint64_t> place_of(std::uint64_t address) const;

  std::uint64_t told_text_ = 0;
  std::uint64_t lowest_in_image_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest_module_ = std::numeric_limits<std::uint64_t>::max();
};

using format::Content;

enum class How : std::uint8_t {
  Keep,
  Drop,
  Hash,  // aliases (Aliases)
  Last,  // of paths the last part stays
  Move,  // kernel addresses (KernelPlaces)
};
// As the section CONTENT says it.
std::string_view state_of(How how);

class Redaction {
 public:
  Redaction();  // each class in its usual way

  How of(Content content) const { return how_[static_cast<std::size_t>(content)]; }
  bool hides(Content content) const { return of(content) != How::Keep; }
  PathRule path_rule() const;

  // "comm,paths" or "all". An error when a class is not known, or cannot be treated so.
  Result<> keep(std::string_view classes);
  Result<> hide(std::string_view classes);  // in its usual way
  Result<> drop(std::string_view classes);
  Result<> hash(std::string_view classes);

  // "cmdline  dropped  can be kept or hashed": a line for each class, for --help.
  static std::string table();

 private:
  Result<> set(std::string_view option, std::string_view classes, How how, bool is_usual);

  std::array<How, format::kContentCount> how_{};
};

// What a capture holds of each class of content that may have to be hidden: counted, with an example of those
// that may be shown to anybody who may read the capture's head.

class Census {
 public:
  struct Count {
    std::uint64_t number = 0;
    std::string_view unit;  // what was counted
    std::string example;    // as it stands; empty: none, or none that should be shown
  };

  void see_head(const format::EventSet& events, const format::Features& features);
  void see(const format::RecordView& record, const format::EventSet& events);
  // The same of records that somebody took apart already.
  void see_sample(const format::Sample& sample, const format::EventAttr& attr);
  void see_other(const format::Record& record);

  // `content` by its number.
  std::array<Count, format::kContentCount> counts() const;
  const KernelPlaces& kernel() const { return kernel_; }
  bool has_stacks() const { return stack_bytes_ != 0; }
  // ns to take off every time so that it tells no time of day: 0 when the times are of another clock.
  std::uint64_t time_shift() const;

 private:
  void see_path(std::string_view path);
  void see_pack(const format::Features& features);

  std::unordered_set<std::string> paths_, source_files_, comms_, containers_;
  std::string path_example_, comm_example_, container_example_, host_example_;
  std::uint64_t words_ = 0, hosts_ = 0, users_ = 0, namespaces_ = 0, payloads_ = 0, stack_bytes_ = 0,
                registers_ = 0, addresses_ = 0, kernel_addresses_ = 0, kernel_lists_ = 0, clocks_ = 0,
                trace_bytes_ = 0;
  bool is_wall_clock_ = false;
  std::uint64_t first_time_ = std::numeric_limits<std::uint64_t>::max();  // ns
  KernelPlaces kernel_;
  format::SampleParser samples_;
};

}  // namespace tacho::report
