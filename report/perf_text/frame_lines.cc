#include "report/perf_text/frame_lines.h"

#include <algorithm>
#include <limits>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostStore = std::size_t{16} << 20;  // bytes of functions' texts
constexpr std::size_t kMostWholes = std::size_t{24}
                                    << 20;  // bytes of texts of frames that are not one plain line

}  // namespace

void FrameLines::write(TextBuffer& out, const Location& location, std::uint8_t more_mode) {
  const auto mode = static_cast<std::uint8_t>((location.cpumode & 7) | (location.is_unwound ? kUnwound : 0) |
                                              (location.is_caller ? kCaller : 0) | more_mode);
  const std::size_t at =
      format::fold_product(location.ip.value + mode, reinterpret_cast<std::uintptr_t>(location.mapping) | 1) %
      kLines;
  Line& line = lines_[at];
  if (line.mapping != location.mapping || line.ip != location.ip.value || line.mode != mode) {
    forget_if_large();
    Found found;
    const std::uint32_t function = location.is_unwound ? kNone : look_up(location, found);
    if (function == kNone) {
      const auto whole = wholes_.find(LocationKey{location.mapping, location.ip.value, mode});
      return whole != wholes_.end() ? out.text(whole->second) : resolve(out, at, location, mode, found);
    }
    const std::uint64_t shown =
        location.mapping == nullptr ? location.ip.value : location.mapping->shown_address(location.ip);
    line = {.mapping = location.mapping,
            .ip = location.ip.value,
            .address = functions_[function].is_shown_as_it_ran ? location.ip.value : shown,
            .function = function,
            .offset = static_cast<std::uint32_t>(shown - found.start),
            .mode = mode};
  }
  write_line(out, at);
}

FrameLines::ModuleNames& FrameLines::names_of(const symbolize::Mapping& mapping) {
  const auto [known, is_new] = modules_.try_emplace(mapping.module);
  ModuleNames& names = known->second;
  const bool may_change = options_.is_pipe && mapping.module->is_unsure();
  if (!is_new || may_change || !resolver_->names_are_plain()) return names;
  const auto held = lock();
  const auto sources = resolver_->names_of(mapping);
  names.is_plain = sources.is_all;
  names.table = sources.table;
  return names;
}

// Looks the function of an address up in tables. kNone: only the resolver can name it.
std::uint32_t FrameLines::look_up(const Location& location, Found& found) {
  using Kind = symbolize::SymbolTable::RowLookup::Kind;
  if (location.mapping == nullptr) {
    // Kernel code may be outside of all mappings.
    if (location.cpumode == format::abi::kCpumodeKernel) return kNone;
    if (nowhere_ == kNone) nowhere_ = function_of({});
    return nowhere_;
  }
  ModuleNames& names = names_of(*location.mapping);
  if (!names.is_plain) return kNone;
  found.names = &names;
  if (names.table == nullptr) return names.unknown;
  const std::uint64_t shown = location.mapping->shown_address(location.ip);
  const auto found_row =
      location.is_caller ? names.table->try_caller_row_at(shown) : names.table->try_row_at(shown);
  if (found_row.kind == Kind::None) {
    if (!names.table->has_unnamed()) return names.unknown;
    if (names.unnamed == nullptr) return kNone;
    const auto function = names.unnamed->find_function(location.is_caller ? shown - 1 : shown);
    if (!function) return names.unknown;
    found.row = function->number | kRangeRow;
    found.start = function->range.start;
  } else {
    if (found_row.row == symbolize::SymbolTable::kNoSymbol) return kNone;
    found.row = found_row.row;
    found.start = names.table->start_of(found_row.row);
  }
  const auto row = names.rows.find(found.row);
  if (row == names.rows.end()) return kNone;
  const std::uint64_t offset = shown - found.start - (location.is_caller ? 1 : 0);
  return offset < row->second.size ? row->second.function : kNone;
}

// Resolves the address, writes its text, and caches it.
void FrameLines::resolve(TextBuffer& out, std::size_t at, const Location& location, std::uint8_t mode,
                         const Found& found) {
  Line& line = lines_[at];
  const bool is_alone = (mode & kAlone) != 0;
  auto held = lock();
  const auto frames = is_alone ? std::span(&resolver_->frame(location), 1) : resolver_->frames(location);
  const symbolize::Frame frame = frames.front();
  if (found.names != nullptr && found.names->table != nullptr)
    found.names->unnamed = found.names->table->unnamed_functions();
  const std::uint64_t offset = frame.shown_address - frame.function_start;
  const bool is_simple = frames.size() == 1 && !frame.is_inlined && !options_.fields.has(Field::Srcline) &&
                         (frame.function.empty() || offset >> 32 == 0);
  if (!is_simple) {
    scratch_.clear();
    if (is_alone) {
      if (options_.fields.has(Field::Sym)) {
        scratch_.character(' ');
        write_symbol(scratch_, frame, options_.fields, options_.names);
      }
      if (options_.fields.has(Field::Dso)) write_module(scratch_, frame, options_.names);
      if (options_.fields.has(Field::Srcline))
        write_source_line(scratch_, frame, options_.names, options_.source_path);
    } else {
      for (const symbolize::Frame& one : frames)
        write_frame(scratch_, one, options_.fields, options_.names, options_.source_path);
    }
    out.text(scratch_.view());
    if (whole_store_.size() + scratch_.size() <= kMostWholes)
      wholes_[{location.mapping, location.ip.value, mode}] = whole_store_.keep(scratch_.view());
    return;
  }
  if (held) held.unlock();
  line = {.mapping = location.mapping, .ip = location.ip.value, .address = 0, .mode = mode};
  line.function = function_of(frame);
  line.address = address_in_chain(frame);
  line.offset = static_cast<std::uint32_t>(offset);
  write_line(out, at);
  if (found.names == nullptr) return;
  if (frame.function.empty()) {
    found.names->unknown = line.function;
  } else if (found.row != kNone && frame.function_start == found.start) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    const std::uint64_t size = std::max<std::uint64_t>(frame.function_end - frame.function_start, 1);
    found.names->rows[found.row] = {line.function, static_cast<std::uint32_t>(std::min(size, kMost))};
  }
}

std::uint32_t FrameLines::function_of(const symbolize::Frame& frame) {
  const std::string_view name = frame.function;
  const std::uint64_t hash = by_name_.hash(reinterpret_cast<std::uintptr_t>(name.data()),
                                           reinterpret_cast<std::uintptr_t>(frame.module));
  return by_name_.find_or_make(
      hash,
      [&](std::uint32_t number) {
        const Function& known = functions_[number];
        // Names live in their symbol table: equal addresses suffice.
        return known.name.data() == name.data() && known.name.size() == name.size() &&
               known.module == frame.module;
      },
      [&] {
        Function made{.name = name, .module = frame.module, .before = {}, .after = {}};
        const Fields& fields = options_.fields;
        made.has_offset = fields.has(Field::Sym) && fields.has(Field::Symoff) && !name.empty();
        made.is_shown_as_it_ran = is_shown_as_it_ran(frame);
        Fields without_offset = fields;
        without_offset.remove(Field::Symoff);
        scratch_.clear();
        if (fields.has(Field::Sym)) {
          scratch_.character(' ');
          write_symbol(scratch_, frame, without_offset, options_.names);
        }
        if (made.has_offset) scratch_.text("+0x");
        made.before = store_.keep(scratch_.view());
        scratch_.clear();
        if (fields.has(Field::Dso)) write_module(scratch_, frame, options_.names);
        made.after = store_.keep(scratch_.view());
        functions_.push_back(made);
        return static_cast<std::uint32_t>(functions_.size() - 1);
      });
}

void FrameLines::write_line(TextBuffer& out, std::size_t at) const {
  const Line& line = lines_[at];
  const bool is_alone = (line.mode & kAlone) != 0;
  const Function& function = functions_[line.function];
  if (!is_alone) {
    out.character('\t');
    out.hex(line.address, 16);
  }
  out.text(function.before);
  if (function.has_offset) out.hex(line.offset);
  out.text(function.after);
  if (!is_alone) out.character('\n');
}

// Limits the caches: names may be long, and a capture may have any number of them.
void FrameLines::forget_if_large() {
  if (store_.size() <= kMostStore) return;
  std::ranges::fill(lines_, Line());
  functions_.clear();
  nowhere_ = kNone;
  by_name_.forget();
  modules_.clear();
  store_ = {};
}

}  // namespace tacho::report
