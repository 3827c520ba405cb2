#include "record/session/sideband.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

TEST(Sideband, DamagedRecordsEndTheWalk) {
  format::ByteWriter comm;
  comm.u32(format::abi::kRecordComm).u16(0).u16(16).u64(1);
  std::vector<std::byte> records(comm.view().begin(), comm.view().end());
  std::vector<std::byte> out;
  append_sideband(format::Bytes(records).first(12), out);
  EXPECT_TRUE(out.empty());
  records[6] = std::byte{0};
  append_sideband(records, out);
  EXPECT_TRUE(out.empty());
}

}  // namespace

}  // namespace tacho::record
