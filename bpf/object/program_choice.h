// Chooses which programs of an object are loaded: all required ones, the optional ones that the kernel takes,
// and of each group of alternatives the first that it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bpf/object/btf_schema.h"
#include "bpf/object/object.h"
#include "format/base/result.h"

namespace tacho::bpf {

struct Candidate {
  std::string name;
  std::string section;
  std::string group;  // of alternatives; empty when it stands alone
  std::string set;    // programs of one set are loaded all or none; each alternative has its own set
  bool optional = false;
  bool drops_events = false;  // it can cost perf events on its tracepoint samples (return_value.h)
};

class ProgramChoice {
 public:
  // The order of `candidates` is the order in which alternatives are tried; but sets with a program that
  // drops events come after the others of their group.
  explicit ProgramChoice(std::vector<Candidate> candidates);

  const std::vector<Candidate>& candidates() const { return candidates_; }
  bool wanted(std::size_t candidate) const;
  // Rejects a program, and with it the others of its set. Fails when no alternative is left.
  Result<> reject(std::size_t candidate, std::string reason);
  // Why the program is not loaded: the reason of its rejection, or the alternative chosen instead. Empty: it
  // is loaded.
  std::string why_not(std::size_t candidate) const;

 private:
  // The first set of the group of which no program was rejected; npos when there is none.
  std::size_t leader(const std::string& group) const;

  std::vector<Candidate> candidates_;
  std::vector<std::string> rejected_;  // for each candidate; empty: not rejected
};

// "on_read (kretprobe/vfs_read)": how messages name a program.
std::string described(const Candidate& candidate);

// The programs of an object as candidates to be loaded, in the order in which they are tried.

// Alternatives first, in the order in which the source has them. That is the order of BTF; the object itself
// groups programs by section.
std::vector<Candidate> candidates_of(const Object& object, const Declarations& declared);

// Whether it hooks functions that the caller has to find.
bool is_for_functions(const Program& program);
// The functions that such programs name, each once.
std::vector<std::string> names_of_functions(const std::vector<Program>& programs);

// Output of programs that tacho does not record: bpf_printk(), and iterators that the recorder does not run.
// A warning for each kind. `runs_iterators`: the object has summaries, before which the recorder runs them.
std::vector<std::string> unsupported_output_of(const Object& object, bool runs_iterators);

}  // namespace tacho::bpf
