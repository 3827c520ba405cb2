// Names of addresses in a sample's payload or other fields.
#pragma once

#include <cstdint>
#include <string>

#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"

namespace tacho::report {

// The frame at an address as it was at the sample's time; null when nothing was mapped there, or when the
// sample came to a sink that asked for names only. Valid until the next lookup.
const symbolize::Frame* frame_at(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address);

// "vfs_read+0x10", or "vfs_read" at its first byte; empty when no function is known there.
std::string address_name(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address);

}  // namespace tacho::report
