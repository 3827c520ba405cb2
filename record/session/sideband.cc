#include "record/session/sideband.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "format/records/perf_abi.h"
#include "format/records/record_view.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// Types of records that a reader needs to understand later samples.
constexpr std::uint32_t kSideband[] = {abi::kRecordMmap,    abi::kRecordComm,     abi::kRecordExit,
                                       abi::kRecordFork,    abi::kRecordMmap2,    abi::kRecordNamespaces,
                                       abi::kRecordKsymbol, abi::kRecordBpfEvent, abi::kRecordCgroup,
                                       abi::kRecordTextPoke};

}  // namespace

void append_sideband(format::Bytes records, std::vector<std::byte>& sideband,
                     std::vector<std::byte>* others) {
  while (records.size() >= format::kRecordHeaderSize) {
    format::Cursor header(records);
    const std::uint32_t type = header.u32();
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (size < format::kRecordHeaderSize || size > records.size()) return;
    const bool is_sideband = std::ranges::find(kSideband, type) != std::end(kSideband);
    if (std::vector<std::byte>* const out = is_sideband ? &sideband : others)
      out->insert(out->end(), records.begin(), records.begin() + static_cast<std::ptrdiff_t>(size));
    records = records.subspan(size);
  }
}

}  // namespace tacho::record
