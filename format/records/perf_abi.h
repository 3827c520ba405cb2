// Constants of the kernel's perf interface (linux/perf_event.h) and of perf (util/event.h), copied so that
// they do not depend on the build host's headers; see docs/capture-format.md.
#pragma once

#include <cstdint>

namespace tacho::format::abi {

inline constexpr std::uint64_t kMagic = 0x32454C4946524550;          // "PERFILE2"
inline constexpr std::uint64_t kMagicSwapped = 0x50455246494C4532;   // in the other byte order
inline constexpr std::uint64_t kMagicVersion1 = 0x454C494646524550;  // "PERFFILE"

enum Type : std::uint32_t {
  kHardware = 0,
  kSoftware = 1,
  kTracepoint = 2,
  kHwCache = 3,
  kRaw = 4,
  kBreakpoint = 5,
  kSynth = 0x80000000,  // perf's: synthesized from a processor trace
};

enum SoftwareConfig : std::uint64_t {
  kCpuClock = 0,
  kTaskClock = 1,
  kPageFaults = 2,
  kContextSwitches = 3,
  kCpuMigrations = 4,
  kMinorFaults = 5,
  kMajorFaults = 6,
  kAlignmentFaults = 7,
  kEmulationFaults = 8,
  kDummy = 9,
  kBpfOutput = 10,
  kCgroupSwitches = 11,
};

enum SampleType : std::uint64_t {
  kSampleIp = 1ULL << 0,
  kSampleTid = 1ULL << 1,
  kSampleTime = 1ULL << 2,
  kSampleAddr = 1ULL << 3,
  kSampleRead = 1ULL << 4,
  kSampleCallchain = 1ULL << 5,
  kSampleId = 1ULL << 6,
  kSampleCpu = 1ULL << 7,
  kSamplePeriod = 1ULL << 8,
  kSampleStreamId = 1ULL << 9,
  kSampleRaw = 1ULL << 10,
  kSampleBranchStack = 1ULL << 11,
  kSampleRegsUser = 1ULL << 12,
  kSampleStackUser = 1ULL << 13,
  kSampleWeight = 1ULL << 14,
  kSampleDataSrc = 1ULL << 15,
  kSampleIdentifier = 1ULL << 16,
  kSampleTransaction = 1ULL << 17,
  kSampleRegsIntr = 1ULL << 18,
  kSamplePhysAddr = 1ULL << 19,
  kSampleAux = 1ULL << 20,
  kSampleCgroup = 1ULL << 21,
  kSampleDataPageSize = 1ULL << 22,
  kSampleCodePageSize = 1ULL << 23,
  kSampleWeightStruct = 1ULL << 24,
};
inline constexpr std::uint64_t kKnownSampleTypes = (kSampleWeightStruct << 1) - 1;

enum ReadFormat : std::uint64_t {
  kReadTimeEnabled = 1ULL << 0,
  kReadTimeRunning = 1ULL << 1,
  kReadId = 1ULL << 2,
  kReadGroup = 1ULL << 3,
  kReadLost = 1ULL << 4,
};
inline constexpr std::uint64_t kKnownReadFormats = (kReadLost << 1) - 1;

enum AttrFlag : std::uint64_t {
  kDisabled = 1ULL << 0,
  kInherit = 1ULL << 1,
  kPinned = 1ULL << 2,
  kExclusive = 1ULL << 3,
  kExcludeUser = 1ULL << 4,
  kExcludeKernel = 1ULL << 5,
  kExcludeHv = 1ULL << 6,
  kExcludeIdle = 1ULL << 7,
  kMmap = 1ULL << 8,
  kComm = 1ULL << 9,
  kFreq = 1ULL << 10,
  kInheritStat = 1ULL << 11,
  kEnableOnExec = 1ULL << 12,
  kTask = 1ULL << 13,
  kWatermark = 1ULL << 14,
  kPreciseIpShift = 15,  // two bits
  kMmapData = 1ULL << 17,
  kSampleIdAll = 1ULL << 18,
  kExcludeHost = 1ULL << 19,
  kExcludeGuest = 1ULL << 20,
  kExcludeCallchainKernel = 1ULL << 21,
  kExcludeCallchainUser = 1ULL << 22,
  kMmap2 = 1ULL << 23,
  kCommExec = 1ULL << 24,
  kUseClockid = 1ULL << 25,
  kContextSwitch = 1ULL << 26,
  kWriteBackward = 1ULL << 27,
  kNamespaces = 1ULL << 28,
  kKsymbol = 1ULL << 29,
  kBpfEvent = 1ULL << 30,
  kAuxOutput = 1ULL << 31,
  kCgroup = 1ULL << 32,
  kTextPoke = 1ULL << 33,
  kBuildId = 1ULL << 34,
  kInheritThread = 1ULL << 35,
  kRemoveOnExec = 1ULL << 36,
  kSigtrap = 1ULL << 37,
  kDeferCallchain = 1ULL << 38,
  kDeferOutput = 1ULL << 39,
};

inline constexpr std::uint64_t kBranchAny = 1ULL << 3;
inline constexpr std::uint64_t kBranchCallStack = 1ULL << 11;
inline constexpr std::uint64_t kBranchHwIndex = 1ULL << 17;
inline constexpr std::uint64_t kBranchCounters = 1ULL << 19;

// The kernel writes types below 64; perf and tacho write types from 64 on.
enum RecordType : std::uint32_t {
  kRecordMmap = 1,
  kRecordLost = 2,
  kRecordComm = 3,
  kRecordExit = 4,
  kRecordThrottle = 5,
  kRecordUnthrottle = 6,
  kRecordFork = 7,
  kRecordRead = 8,
  kRecordSample = 9,
  kRecordMmap2 = 10,
  kRecordAux = 11,
  kRecordItraceStart = 12,
  kRecordLostSamples = 13,
  kRecordSwitch = 14,
  kRecordSwitchCpuWide = 15,
  kRecordNamespaces = 16,
  kRecordKsymbol = 17,
  kRecordBpfEvent = 18,
  kRecordCgroup = 19,
  kRecordTextPoke = 20,
  kRecordAuxOutputHwId = 21,
  kRecordCallchainDeferred = 22,

  kRecordUserStart = 64,
  kRecordHeaderAttr = 64,
  kRecordEventType = 65,
  kRecordTracingData = 66,
  kRecordBuildId = 67,
  kRecordFinishedRound = 68,
  kRecordIdIndex = 69,
  kRecordAuxtraceInfo = 70,
  kRecordAuxtrace = 71,
  kRecordAuxtraceError = 72,
  kRecordThreadMap = 73,
  kRecordCpuMap = 74,
  kRecordStatConfig = 75,
  kRecordStat = 76,
  kRecordStatRound = 77,
  kRecordEventUpdate = 78,
  kRecordTimeConv = 79,
  kRecordHeaderFeature = 80,
  kRecordCompressed = 81,
  kRecordFinishedInit = 82,
  kRecordCompressed2 = 83,
  kRecordBpfMetadata = 84,
  kRecordSchedstatCpu = 85,
  kRecordSchedstatDomain = 86,
};

enum Misc : std::uint16_t {
  kCpumodeMask = 7,
  kCpumodeUnknown = 0,
  kCpumodeKernel = 1,
  kCpumodeUser = 2,
  kCpumodeHypervisor = 3,
  kCpumodeGuestKernel = 4,
  kCpumodeGuestUser = 5,
  kMiscProcMapTimeout = 1 << 12,
  kMiscMmapData = 1 << 13,
  kMiscCommExec = 1 << 13,
  kMiscForkExec = 1 << 13,
  kMiscSwitchOut = 1 << 13,
  kMiscSwitchOutPreempt = 1 << 14,
  kMiscExactIp = 1 << 14,
  kMiscMmapBuildId = 1 << 14,
  kMiscBuildIdSize = 1 << 15,  // perf's BUILD_ID records: the size byte is valid
};

// Context markers: call chain entries from here up are not addresses; they set the cpumode of the following
// entries.
enum ContextMark : std::uint64_t {
  kContextHypervisor = static_cast<std::uint64_t>(-32),
  kContextKernel = static_cast<std::uint64_t>(-128),
  kContextUser = static_cast<std::uint64_t>(-512),
  kContextUserDeferred = static_cast<std::uint64_t>(-640),
  kContextGuest = static_cast<std::uint64_t>(-2048),
  kContextGuestKernel = static_cast<std::uint64_t>(-2176),
  kContextGuestUser = static_cast<std::uint64_t>(-2560),
  kContextMax = static_cast<std::uint64_t>(-4095),
};

// Header features. 1 to 34 are perf's, and bits in the file's header; tacho's start at 224
// (docs/capture-format.md).
enum Feature : std::uint32_t {
  kFeatureTracingData = 1,
  kFeatureBuildId = 2,
  kFeatureHostname = 3,
  kFeatureOsRelease = 4,
  kFeatureVersion = 5,
  kFeatureArch = 6,
  kFeatureNrCpus = 7,
  kFeatureCpuDesc = 8,
  kFeatureCpuId = 9,
  kFeatureTotalMem = 10,
  kFeatureCmdline = 11,
  kFeatureEventDesc = 12,
  kFeatureCpuTopology = 13,
  kFeatureNumaTopology = 14,
  kFeatureBranchStack = 15,
  kFeaturePmuMappings = 16,
  kFeatureGroupDesc = 17,
  kFeatureAuxtrace = 18,
  kFeatureStat = 19,
  kFeatureCache = 20,
  kFeatureSampleTime = 21,
  kFeatureMemTopology = 22,
  kFeatureClockid = 23,
  kFeatureDirFormat = 24,
  kFeatureBpfProgInfo = 25,
  kFeatureBpfBtf = 26,
  kFeatureCompressed = 27,
  kFeatureCpuPmuCaps = 28,
  kFeatureClockData = 29,
  kFeatureHybridTopology = 30,
  kFeaturePmuCaps = 31,
  kFeatureCpuDomainInfo = 32,
  kFeatureEMachine = 33,
  kFeatureClnSize = 34,

  kFeaturePayloadSchemas = 224,
  kFeatureAttachments = 225,
  kFeatureAttachedPrograms = 226,
  kFeatureSymbolPack = 227,
  kFeatureContent = 228,
  kFeatureUserStacks = 229,
  kFeatureLosses = 230,
  kFeatureCpuChanges = 231,
  kFeatureBpfMaps = 232,
  kFeatureBpfPlaces = 233,
};
inline constexpr std::uint32_t kFirstOwnFeature = kFeaturePayloadSchemas;
inline constexpr std::uint32_t kOwnFeaturesEnd = kFeatureBpfPlaces + 1;
inline constexpr std::uint32_t kFeatureCount = 256;

}  // namespace tacho::format::abi
