// `tacho doctor`: what this host can record, what follows from each lack, and the command that mends it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/host_facts.h"

namespace tacho::record {

struct Finding {
  enum class State : std::uint8_t { Good, Limited, Missing };
  std::string name;
  State state = State::Good;
  std::string value;        // what was seen
  std::string consequence;  // what cannot be done; empty when all is well
  std::string remedy;       // a command or an option; empty when there is none
};
// What the facts mean, one by one.
std::vector<Finding> judge(const HostFacts& facts);
// Whether anything can be recorded here by this user.
bool can_record(const HostFacts& facts);

std::string doctor_text(const std::vector<Finding>& findings, bool can_record);
std::string doctor_json(const std::vector<Finding>& findings, bool can_record);

// `arguments`: what stands behind "doctor". The exit status.
int run_doctor(const std::vector<std::string>& arguments);

}  // namespace tacho::record
