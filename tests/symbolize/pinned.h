// Files as tacho-record holds them open, in memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "format/base/file.h"
#include "symbolize/files/pinned_files.h"

namespace tacho::symbolize::test {

class Held {
 public:
  // A binary without a build id.
  Held& file(const std::string& name, std::string_view content) { return add(" b 7 - " + name, content); }
  Held& map(std::uint32_t process, std::string_view content) {
    return add(" m " + std::to_string(process) + " - ", content);
  }
  // Valid until the next file is added.
  const PinnedFiles* files() {
    const format::Fd listing = made(text_);
    auto read = PinnedFiles::read(listing.get());
    EXPECT_TRUE(read);
    if (read) files_ = std::move(*read);
    return &files_;
  }

 private:
  static format::Fd made(std::string_view content) {
    format::Fd file(::memfd_create("held", MFD_CLOEXEC));
    EXPECT_TRUE(format::write_at(file.get(), 0, std::as_bytes(std::span(content))));
    return file;
  }
  Held& add(const std::string& row, std::string_view content) {
    open_.push_back(made(content));
    text_ += std::to_string(open_.back().get()) + row + '\0';
    return *this;
  }

  std::deque<format::Fd> open_;
  std::string text_;
  PinnedFiles files_;
};

}  // namespace tacho::symbolize::test
