// Chooses which programs of an object are loaded: all required ones, the optional ones that the kernel
// accepts, and of each group of alternatives the first that it accepts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bpf/object/btf_schema.h"
#include "bpf/object/object.h"
#include "format/base/result.h"

namespace tacho::bpf {

struct Candidate {
  std::string name;
  std::string section;
  std::string group;  // of alternatives; empty: none
  std::string set;    // programs of one set are loaded all or none; each alternative has its own set
  bool optional = false;
  bool drops_events = false;  // it can make perf events on its tracepoint miss samples (kernel_btf.h)
};

class ProgramChoice {
 public:
  // Alternatives are tried in the order of `candidates`, but sets with a program that drops events come
  // after the others of their group.
  explicit ProgramChoice(std::vector<Candidate> candidates);

  const std::vector<Candidate>& candidates() const { return candidates_; }
  bool wanted(std::size_t candidate) const;
  // Rejects a program and the others of its set. An error if no alternative is left.
  Result<> reject(std::size_t candidate, std::string reason);
  // Why the program is not loaded: the reason of its rejection, or the alternative that is used. Empty: it is
  // loaded.
  std::string why_not(std::size_t candidate) const;

 private:
  // The first candidate of the group that was not rejected; candidates().size(): there is none.
  std::size_t leader(const std::string& group) const;

  std::vector<Candidate> candidates_;
  std::vector<std::string> rejected_;  // for each candidate; empty: not rejected
};

// "on_read (kretprobe/vfs_read)": how messages name a program.
std::string candidate_text(const Candidate& candidate);

// The programs of an object, in the order in which they are tried. Alternatives come first, in the order of
// the source, which BTF has (the object groups programs by section).
std::vector<Candidate> candidates_of(const Object& object, const Declarations& declared);

// Whether it hooks functions that the caller has to find.
bool is_for_functions(const Program& program);
// The functions that such programs name, each once.
std::vector<std::string> names_of_functions(const std::vector<Program>& programs);

// Warnings about output that is not recorded: bpf_printk(), and iterators that the recorder does not run.
// `runs_iterators`: the object has summaries, so the recorder runs iterators before it reads them.
std::vector<std::string> unsupported_output_of(const Object& object, bool runs_iterators);

}  // namespace tacho::bpf
