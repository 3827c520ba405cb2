// Which private content a capture has.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>

#include "format/container/content_classes.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/kaslr_remap.h"

namespace tacho::report {

// Counts the private content of a capture by class, with an example for the classes that `tacho header` shows
// anyway.
class Census {
 public:
  struct Count {
    std::uint64_t number = 0;
    std::string unit;     // of `number`
    std::string example;  // unchanged; empty: there is none, or it should not be shown
  };

  void see_head(const format::EventSet& events, const format::Features& features);
  void see(const format::RecordView& record, const format::EventSet& events);
  // The same for records that are parsed already.
  void see_sample(const format::Sample& sample, const format::EventAttr& attr);
  void see_other(const format::Record& record);

  // By the number of the Content.
  std::array<Count, format::kContentCount> counts() const;
  const KaslrRemap& kernel() const { return kernel_; }
  bool has_stacks() const { return stack_bytes_ != 0; }
  // ns to subtract from every time to hide the time of day; 0 when the recording clock does not reveal it.
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
  KaslrRemap kernel_;
  format::SampleParser samples_;
};

}  // namespace tacho::report
