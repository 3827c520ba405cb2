// Checks that only root and the caller can change or replace a file. As root, tacho loads BPF objects and
// writes files that the command line names: no other user may decide what is in them or where they are.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "format/base/result.h"

namespace tacho::format {

// Why others than root, the user of this process and the one who called sudo may change what has this status
// ("belongs to user 1000"), or nothing. In a folder with the sticky bit everybody may add files, but only
// owners replace them.
std::optional<std::string> who_else_may_change(const struct stat& status);

// The same for a path: the file, its folder, every folder above and every link on the way. The error names
// the first one that others may change, and its code is EPERM then. Without an error, others cannot make the
// path lead elsewhere later either.
Result<> check_trusted_path(const std::string& path);

// The same for a program that is about to be run: root runs none that others may change. Other users run it
// with their own rights, and nothing is refused. The error says so, with the code EPERM; a program that is
// not there is no error: running it fails.
Result<> check_program(const std::string& path);

// The same for the program at `path` in the folder of this one, `self`: where everybody may add files, others
// may have put it there. Not refused when those users could change this program itself.
Result<> check_beside(const std::string& self, const std::string& path);

// The first program of this name in the folders of PATH that may be run so. The code is ENOENT when there is
// none, EPERM when the only ones are refused.
Result<std::string> find_program(const std::string& name);

}  // namespace tacho::format
