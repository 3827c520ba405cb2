#include "report/profile/named_rows.h"

#include "format/perf_abi.h"

namespace tacho::report {

void NamedRows::name_rows() {
  const auto rows = profile_->rows();
  for (std::size_t number = rows_.size(); number < rows.size(); ++number) {
    const ProfileRow& row = rows[number];
    Row& named = rows_.emplace_back();
    named.function = functions_->of_place(row.location);
    named.is_kernel = resolver_->location(row.location).cpumode == format::abi::kCpumodeKernel;
    if (stacks_ != nullptr && row.stack != nullptr) named.chain = stacks_->number_of(*row.stack);
  }
}

}  // namespace tacho::report
