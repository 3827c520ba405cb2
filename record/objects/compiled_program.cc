#include "record/objects/compiled_program.h"

#include <utility>

#include "bpf/user_object.h"
#include "format/base/file.h"
#include "format/base/output.h"

namespace tacho::record {

Result<std::string> compile_program(const std::string& source, std::string output) {
  if (!source.ends_with(".c"))
    return use_error("--compile: '" + source + "' is no C source: its name does not end in .c");
  if (output.empty())
    output = source.substr(source.rfind('/') + 1, source.rfind('.') - source.rfind('/')) + "o";
  if (!output.ends_with(".o"))
    return use_error("--compile: -o '" + output +
                     "': the name of an object ends in .o, by which -e knows it");
  const auto object = bpf::UserObject::open(source, {});
  if (!object) return object.error();
  auto file = format::WholeOutput::create(output, format::WholeOutput::Old::Replaced);
  if (!file) return std::move(file.error()).in(output);
  if (auto written = format::write_at(file->descriptor(), 0, object->elf()); !written)
    return std::move(written.error()).in(output);
  if (auto finished = file->finish(); !finished) return std::move(finished.error()).in(output);
  return output;
}

}  // namespace tacho::record
