// SPDX-License-Identifier: Apache-2.0
// Prints the functions with the most samples of their own: top_functions perf.data
#include <tacho/capture.h>

#include <algorithm>
#include <cstdio>

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: top_functions CAPTURE\n");
    return 1;
  }
  std::string error;
  const auto capture = tacho::Capture::open(words[1], {}, error);
  if (!capture) {
    std::fprintf(stderr, "top_functions: %s\n", error.c_str());
    return 2;
  }
  tacho::Profile profile;
  capture->read([&profile](const tacho::CapturedSample& sample) {
    profile.add(sample);
    return true;
  });

  const auto rows = profile.rows();
  const double total = static_cast<double>(std::max<std::uint64_t>(profile.total(), 1));
  std::printf("%llu samples\n", static_cast<unsigned long long>(profile.samples()));
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 10); ++i) {
    const std::string function = rows[i].function.empty() ? "[unknown]" : tacho::printable(rows[i].function);
    std::printf("%6.2f %%  %6.2f %%  %s  [%s]\n", 100 * static_cast<double>(rows[i].self) / total,
                100 * static_cast<double>(rows[i].with_callees) / total, function.c_str(),
                tacho::printable(rows[i].module).c_str());
  }
  for (const std::string& problem : capture->problems())
    std::fprintf(stderr, "top_functions: %s\n", problem.c_str());
  return 0;
}
