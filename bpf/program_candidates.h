// The programs of an object as candidates to be loaded, in the order in which they are tried.
#pragma once

#include <string>
#include <vector>

#include "bpf/btf_schema.h"
#include "bpf/object.h"
#include "bpf/program_choice.h"

namespace tacho::bpf {

// Alternatives first, in the order in which the source has them. That is the order of BTF; the object itself
// groups programs by section.
std::vector<Candidate> candidates_of(const Object& object, const Declarations& declared);

// Whether it hooks functions that somebody else finds.
bool is_for_functions(const Program& program);
// The functions that such programs name, each once.
std::vector<std::string> names_of_functions(const std::vector<Program>& programs);

}  // namespace tacho::bpf
