#include "bpf/made_program.h"

#include <bpf/bpf.h>

#include <cerrno>

namespace tacho::bpf {

Result<format::Fd> load_made(bpf_prog_type type, const char* name, std::span<const bpf_insn> program,
                             const std::string& what) {
  format::Fd loaded(bpf_prog_load(type, name, "GPL", program.data(), program.size(), nullptr));
  if (loaded) return loaded;
  return system_error(what, errno);
}

}  // namespace tacho::bpf
