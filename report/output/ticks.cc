#include "report/output/ticks.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tacho::report {

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(std::max(least, 1.0))));
  for (const double times : {1, 2, 5})
    if (times * power >= least) return times * power;
  return 10 * power;
}

std::vector<double> linear_ticks(double from, double to, double most) {
  const double step = round_step((to - from) / std::max(most, 1.0));
  std::vector<double> found;
  const double first = std::ceil(from / step),
               count = std::min(std::floor(to / step) - first + 1, 2 * std::max(most, 1.0) + 2);
  for (double number = 0; number < count; ++number) found.push_back((first + number) * step);
  return found;
}

std::vector<double> log_ticks(double from, double to, bool is_bytes) {
  const std::initializer_list<double> of_bytes = {1, 32, 4, 256, 2, 8, 16, 64, 128, 512},
                                      of_others = {1, 5, 2};
  std::vector<double> found;
  for (const double times : is_bytes ? of_bytes : of_others)
    for (double power = 1; power * times <= to; power *= is_bytes ? 1024 : 10)
      if (power * times >= from) found.push_back(power * times);
  return found;
}

}  // namespace tacho::report
