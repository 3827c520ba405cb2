// libbpf dies of some damaged objects. So what was not compiled here is opened and loaded once by a child
// process that may do nothing, against a kernel that says yes to everything: what the child survives is given
// to libbpf in this process.
#pragma once

#include <functional>
#include <string>

#include "format/cursor.h"
#include "format/result.h"

namespace tacho::bpf {

// Fails when the child was killed by the object, or worked on it for more than 10 s, or `stop` said so (code
// EINTR). What libbpf merely refuses is no failure here: it will say so again. To be called while the process
// has one thread.
Result<> try_object(format::Bytes elf, const std::string& name, const std::function<bool()>& stop);

}  // namespace tacho::bpf
