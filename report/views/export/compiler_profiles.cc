// Profiles for compilers and post-link optimizers: branches and sequential code of one program or library.
// Pre-aggregated text of BOLT, by link-time addresses, and text of AutoFDO, by offsets in the file.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/views/export/export_formats.h"
#include "report/views/export/export_view.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMispredicted = 1;  // of a branch's flags

// Branches of samples with branch stacks, the code that ran from one branch to the next, and the addresses of
// samples.
class BranchSums : public Sink {
 public:
  explicit BranchSums(Session& session) : resolver_(session.resolver()) {}
  using Pair = std::pair<LocationId, LocationId>;
  struct Count {
    std::uint64_t count = 0, mispredicted = 0;
  };
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    ++samples_;
    ++addresses_[sample.location_id];
    const format::Sample& fields = *sample.fields;
    LocationId newer_source = kNo<LocationId>;  // of the branch that was taken after this one
    for (std::size_t i = 0; i < fields.branch_count(); ++i) {
      const format::BranchEntry branch = fields.branch(i);
      if (branch.from == 0 && branch.to == 0) continue;
      const LocationId from = location_of(sample, branch.from), to = location_of(sample, branch.to);
      Count& count = branches_[{from, to}];
      ++count.count;
      count.mispredicted += branch.flags & kMispredicted;
      if (newer_source != kNo<LocationId>) add_range(to, newer_source);
      newer_source = from;
    }
    return Flow::Continue;
  }

  const std::map<Pair, Count>& branches() const { return branches_; }
  const std::map<Pair, std::uint64_t>& ranges() const { return ranges_; }
  const std::map<LocationId, std::uint64_t>& addresses() const { return addresses_; }
  std::uint64_t samples() const { return samples_; }

 private:
  static LocationId location_of(const ResolvedSample& sample, std::uint64_t address) {
    const auto is_kernel = static_cast<std::int64_t>(address) < 0;
    return sample
        .locate_in(address, static_cast<std::uint8_t>(is_kernel ? format::abi::kCpumodeKernel
                                                                : format::abi::kCpumodeUser))
        .id;
  }
  // Code runs upwards within one mapping; anything else is a branch that was not recorded.
  void add_range(LocationId from, LocationId to) {
    const Location &begin = resolver_.location(from), &end = resolver_.location(to);
    if (begin.mapping == end.mapping && begin.mapping != nullptr && begin.ip.value <= end.ip.value)
      ++ranges_[{from, to}];
  }

  Resolver& resolver_;
  std::map<Pair, Count> branches_;
  std::map<Pair, std::uint64_t> ranges_;
  std::map<LocationId, std::uint64_t> addresses_;
  std::uint64_t samples_ = 0;
};

// The same of one module.
class ModuleProfile {
 public:
  // Offsets need no file; link-time addresses need it, or its packed symbols.
  enum class Addresses : std::uint8_t { LinkTime, FileOffsets };
  // `name`: the path, its last part or the build id; empty: of the module with the most branches or samples.
  static Result<ModuleProfile> make(Session& session, const BranchSums& sums, std::string_view name,
                                    Addresses kind) {
    ModuleProfile made;
    made.resolver_ = &session.resolver();
    made.kind_ = kind;
    if (auto chosen = made.choose_module(sums, name); !chosen) return std::move(chosen.error());
    for (const auto& [pair, count] : sums.branches()) {
      const auto ends = made.addresses_of(pair);
      if (!ends) continue;
      BranchSums::Count& sum = made.branches[*ends];
      sum.count += count.count;
      sum.mispredicted += count.mispredicted;
    }
    for (const auto& [pair, count] : sums.ranges())
      if (const auto ends = made.addresses_of(pair)) made.ranges[*ends] += count;
    for (const auto& [location, count] : sums.addresses()) made.add_address(location, count);
    if (made.branches.empty() && made.addresses.empty())
      return Error{"no address of " + printable(made.module->path) +
                   " can be told in its file: neither it nor its packed symbols are here"};
    return made;
  }

  using Ends = std::pair<std::uint64_t, std::uint64_t>;
  const symbolize::Module* module = nullptr;
  std::map<Ends, BranchSums::Count> branches;
  std::map<Ends, std::uint64_t> ranges;
  std::map<std::uint64_t, std::uint64_t> addresses;
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> places;  // of samples: function and offset

 private:
  Result<> choose_module(const BranchSums& sums, std::string_view name) {
    std::map<const symbolize::Module*, std::uint64_t> counts;
    const auto count = [&](LocationId location, std::uint64_t more) {
      const symbolize::Mapping* const mapping = resolver_->location(location).mapping;
      if (mapping != nullptr && mapping->module->kind == symbolize::ModuleKind::User)
        counts[mapping->module] += more;
    };
    for (const auto& [pair, sum] : sums.branches()) count(pair.first, sum.count);
    if (sums.branches().empty())
      for (const auto& [location, samples] : sums.addresses()) count(location, samples);
    std::uint64_t most = 0;
    for (const auto& [known, samples] : counts) {
      const bool is_named =
          name.empty() || known->path == name || known->short_name == name || known->build_id.hex() == name;
      if (!is_named || samples <= most) continue;
      most = samples;
      module = known;
    }
    if (module != nullptr) return Done{};
    return name.empty() ? Error{"no sample is in code of a program or library"}
                        : Error{"--binary: no sample is in '" + printable(name) + "'"};
  }
  std::optional<std::uint64_t> address_of(LocationId id) {
    const Location& location = resolver_->location(id);
    if (location.mapping == nullptr || location.mapping->module != module) return std::nullopt;
    if (kind_ == Addresses::FileOffsets) return location.mapping->shown_address(location.ip);
    const symbolize::LocationFacts facts = resolver_->facts(location);
    return facts.source == nullptr ? std::nullopt : std::optional(facts.elf_address);
  }
  std::optional<Ends> addresses_of(const BranchSums::Pair& pair) {
    const auto from = address_of(pair.first), to = address_of(pair.second);
    return from && to ? std::optional(Ends{*from, *to}) : std::nullopt;
  }
  void add_address(LocationId id, std::uint64_t count) {
    const auto address = address_of(id);
    if (!address) return;
    addresses[*address] += count;
    const symbolize::LocationFacts facts = resolver_->facts(resolver_->location(id));
    if (facts.symbol && !facts.symbol->is_unnamed())
      places[{printable(facts.symbol->name), facts.shown_address - facts.symbol->start}] += count;
  }

  Resolver* resolver_ = nullptr;
  Addresses kind_ = Addresses::LinkTime;
};

// perf2bolt -pa -p FILE for branches; without them what llvm-bolt -data takes: samples by function and
// offset.
void write_bolt(const ModuleProfile& profile, std::string_view event, TextOutput& out) {
  for (const auto& [ends, sum] : profile.branches) {
    out.text(fmt::format("B {:x} {:x} {} {}", ends.first, ends.second, sum.count, sum.mispredicted));
    out.end_line();
  }
  for (const auto& [ends, count] : profile.ranges) {
    out.text(fmt::format("F {:x} {:x} {}", ends.first, ends.second, count));
    out.end_line();
  }
  if (!profile.branches.empty()) return;
  out.text(fmt::format("no_lbr {}:", printable(event)));
  out.end_line();
  for (const auto& [place, count] : profile.places) {
    if (place.first.find_first_of(" \t") != std::string::npos) continue;  // it would be two fields
    out.text(fmt::format("1 {} {:x} {}", place.first, place.second, count));
    out.end_line();
  }
}

// create_llvm_prof --profiler=text: ranges, addresses and branches, each after its number.
void write_autofdo(const ModuleProfile& profile, TextOutput& out) {
  const auto line = [&out](const std::string& text) {
    out.text(text);
    out.end_line();
  };
  line(fmt::format("{}", profile.ranges.size()));
  for (const auto& [ends, count] : profile.ranges)
    line(fmt::format("{:x}-{:x}:{}", ends.first, ends.second, count));
  const bool has_addresses = profile.branches.empty();
  line(fmt::format("{}", has_addresses ? profile.addresses.size() : 0));
  if (has_addresses)
    for (const auto& [address, count] : profile.addresses) line(fmt::format("{:x}:{}", address, count));
  line(fmt::format("{}", profile.branches.size()));
  for (const auto& [ends, sum] : profile.branches)
    line(fmt::format("{:x}->{:x}:{}", ends.first, ends.second, sum.count));
}

enum class CompilerForm : std::uint8_t { Bolt, AutoFdo };

Result<Shown> show_compiler_profile(Session& session, TextOutput& out, const ExportOptions& options,
                                    CompilerForm form) {
  read_head(session);
  BranchSums sums(session);
  run_with_progress(session, sums, out);
  Shown shown(Symbols::Used);
  if (sums.samples() == 0) {
    shown.notes.emplace_back(kNoExportedSamples);
    return shown;
  }
  auto profile = ModuleProfile::make(session, sums, options.binary,
                                     form == CompilerForm::Bolt ? ModuleProfile::Addresses::LinkTime
                                                                : ModuleProfile::Addresses::FileOffsets);
  if (!profile) return std::move(profile.error()).in(printable(options.reading.shown_input()));
  if (form == CompilerForm::Bolt)
    write_bolt(*profile, session.events().size() > 0 ? session.events()[0].name : "", out);
  else
    write_autofdo(*profile, out);
  shown.notes.push_back("tacho export: the profile is of " + printable(profile->module->path) +
                        (options.binary.empty() ? ", which has the most; --binary chooses another" : ""));
  if (profile->branches.empty())
    shown.notes.emplace_back(
        "tacho export: the capture has no branch stacks (record -j any,u), so the profile is of single "
        "addresses, which says less");
  return shown;
}

}  // namespace

Result<cli::ExitStatus> export_bolt(const std::vector<std::string>& arguments) {
  return export_samples({.name = "bolt", .lines = ExportTraits::Lines::Never, .is_of_binary = true},
                        arguments, [](Session& session, TextOutput& out, const ExportOptions& options) {
                          return show_compiler_profile(session, out, options, CompilerForm::Bolt);
                        });
}

Result<cli::ExitStatus> export_autofdo(const std::vector<std::string>& arguments) {
  return export_samples({.name = "autofdo", .lines = ExportTraits::Lines::Never, .is_of_binary = true},
                        arguments, [](Session& session, TextOutput& out, const ExportOptions& options) {
                          return show_compiler_profile(session, out, options, CompilerForm::AutoFdo);
                        });
}

}  // namespace tacho::report
