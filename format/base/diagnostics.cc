#include "format/base/diagnostics.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tacho::format {

namespace {

struct DamageRow {
  Damage kind;
  std::string_view text;
  bool incomplete;  // the result lacks something
};

constexpr std::array kDamage{
    DamageRow{Damage::NotClosed, "not closed by its recorder", true},
    DamageRow{Damage::CutShort, "cut short", true},
    DamageRow{Damage::BadRecord, "unreadable record", true},
    DamageRow{Damage::BadFeature, "unreadable header section", true},
    DamageRow{Damage::BadFrame, "unreadable compressed record", true},
    DamageRow{Damage::UnknownEvent, "record of an event that the capture does not describe", true},
    DamageRow{Damage::UnknownRecord, "record of a type newer than this program, ignored", false},
    DamageRow{Damage::OutOfOrder, "record out of time order", false},
    DamageRow{Damage::OrderGivenUp,
              "record out of time order: too many would have to wait for the end of their round", true},
    DamageRow{Damage::NoSymbols, "no symbols", false},
    DamageRow{Damage::BadSymbolSource, "symbols left out", true},
    DamageRow{Damage::WrongNames, "names of another file", true},
    DamageRow{Damage::Outside, "samples of unknown processes", false},
    DamageRow{Damage::Lost, "lost while recording", false},
    DamageRow{Damage::Note, "note", false},
};

const DamageRow& row_of(Damage kind) { return *std::ranges::find(kDamage, kind, &DamageRow::kind); }

}  // namespace

void Diagnostics::add_finding(Damage kind, std::uint64_t offset, std::string detail, std::uint64_t count,
                              std::uint64_t bytes) {
  const auto known = std::ranges::find(findings_, kind, &Finding::kind);
  if (known != findings_.end()) {
    known->count += count;
    known->bytes += bytes;
    return;
  }
  findings_.push_back({kind, count, offset, std::move(detail), bytes});
}

void Diagnostics::add_line(Damage kind, std::string detail) {
  findings_.push_back({kind, 1, kNoOffset, std::move(detail), 0});
}

void Diagnostics::take_findings(Diagnostics& other) {
  for (Finding& finding : std::exchange(other.findings_, {})) {
    if (finding.kind == Damage::NoSymbols)
      add_line(finding.kind, std::move(finding.first));
    else
      add_finding(finding.kind, finding.first_offset, std::move(finding.first), finding.count, finding.bytes);
  }
}

void Diagnostics::remove(Damage kind) {
  std::erase_if(findings_, [kind](const Finding& finding) { return finding.kind == kind; });
}

bool Diagnostics::incomplete() const {
  return std::ranges::any_of(findings_,
                             [](const Finding& finding) { return row_of(finding.kind).incomplete; });
}

std::string Diagnostics::finding_text(const Finding& finding) {
  std::string text(row_of(finding.kind).text);
  if (!finding.first.empty()) text += ": " + finding.first;
  const bool many = finding.count > 1;
  const bool placed = finding.first_offset != kNoOffset;
  if (placed) text += (many ? " (first at offset " : " (at offset ") + std::to_string(finding.first_offset);
  if (many) text += (placed ? ", " : " (") + std::to_string(finding.count) + " times";
  if (many && finding.bytes != 0) text += ", " + std::to_string(finding.bytes) + " bytes in all";
  if (many || placed) text += ")";
  return text;
}

}  // namespace tacho::format
