// Checks that no other user can change or replace a file. As root, tacho loads BPF objects, and reads and
// writes files, which other users must not control.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::format {

// Why other users may change a file or folder with this status ("belongs to user 1000"); nullopt: none may.
// Root, this process's user and the caller of sudo are trusted. In a folder with the sticky bit all users may
// add files, but only owners can replace them, so it is safe.
std::optional<std::string> who_else_may_change(const struct stat& status);
// The same for an open file or folder (O_PATH is enough), whose access control list counts too.
std::optional<std::string> who_else_may_change(const Fd& file, const struct stat& status);

// Checks a path: the file, all folders above, and all links on the way. The error (code EPERM) names the
// first one that others may change. Without an error, others cannot redirect the path later either.
Result<> check_trusted_path(const std::string& path);
// The same for a file that will be replaced: its own owner and mode do not count, and it may be missing.
Result<> check_trusted_way(const std::string& path);

// A file that a path names.
struct FileOnWay {
  Fd file;  // O_PATH
  struct stat status {};
  // Who else can change the file, a folder or a link on the way: "/tmp/a belongs to user 1000"; empty: none.
  std::string objection;
  bool is_public = false;  // every user can read it: the file is world-readable, each folder world-searchable
};
// Follows a path below the folder `root` (empty: "/"), which no link leaves, and judges all that it meets.
Result<FileOnWay> find_on_way(const std::string& root, const std::string& path);

// Checks the path of a program that root is about to run (error code EPERM). No error for other users, who
// run it with their own rights, and for a missing program, which fails later.
Result<> check_program(const std::string& path);

// check_program() for `path`, in the folder of this program, `self`. No error if other users can change this
// program too: then the check would protect nothing.
Result<> check_beside(const std::string& self, const std::string& path);

// The first program of this name in PATH that passes check_program(). Error codes: ENOENT: there is none;
// EPERM: all are refused.
Result<std::string> find_program(const std::string& name);

// For root: the folders of PATH that no other user can change, for a shell that root starts. For other users
// PATH as it is.
std::string trusted_search_path();

}  // namespace tacho::format
