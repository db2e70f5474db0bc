#include "cupel/kernels/cpu/panel_codes.h"

#include <algorithm>

#include "cupel/kernels/aligned_buffer.h"
#include "cupel/kernels/cpu/pack_rows.h"

namespace cupel {
namespace {

constexpr std::size_t kPanel = PackedMatrix::kPanel;
constexpr std::size_t kSlotBytes =
    in_place_depth(PackedMatrix::Format::kF32) * kPanel * sizeof(float);
constexpr std::size_t kSlotScales =
    in_place_depth(PackedMatrix::Format::kFp4) / PackedMatrix::kFp4Group * kPanel;

struct Scratch {
  AlignedBuffer codes{kPanelSlots * kSlotBytes};
  AlignedBuffer scales{kPanelSlots * kSlotScales};
};

// How far what is packed next into a slot is from what is at `at` of its rows: their next codes, or
// the first of the rows kPanelSlots panels on.
std::size_t distance_to_next(std::size_t row_bytes, std::size_t at, std::size_t bytes) {
  return at + bytes < row_bytes ? bytes : kPanelSlots * kPanel * row_bytes - at;
}

}  // namespace

PanelCodes panel_at(const PackedMatrix& w, std::size_t panel, std::size_t k0, std::size_t count,
                    std::size_t slot, InPlaceOrder order) {
  using Format = PackedMatrix::Format;
  const Format format = w.format();
  PanelCodes p;
  if (format == Format::kFp8) p.fp8_scales = w.fp8_scales(panel, k0);
  if (!w.is_in_place()) {
    p.codes = w.panel_codes(panel, k0);
    if (format == Format::kFp4) p.fp4_scales = w.fp4_scales(panel, k0);
    return p;
  }
  static thread_local Scratch scratch;
  const std::size_t rows = std::min(kPanel, w.n() - panel * kPanel);
  const std::size_t bytes = PackedMatrix::row_bytes(format, count);
  std::uint8_t* to = scratch.codes.data() + slot * kSlotBytes;
  const std::size_t at = PackedMatrix::row_bytes(format, k0);
  const std::byte* from = w.row_codes(panel * kPanel) + at;
  const bool words = order == InPlaceOrder::kWords;
  pack_rows(from, w.row_bytes(), rows, bytes, words ? 4 : PackedMatrix::unit_bytes(format), to,
            distance_to_next(w.row_bytes(), at, bytes));
  p.codes = to;
  if (format == Format::kFp4) {
    if (!words) pair_fp4_words(to, bytes * kPanel);
    constexpr std::size_t kGroup = PackedMatrix::kFp4Group;
    std::uint8_t* scales = scratch.scales.data() + slot * kSlotScales;
    pack_rows(w.row_fp4_scales(panel * kPanel) + k0 / kGroup, w.k() / kGroup, rows, count / kGroup,
              1, scales);
    p.fp4_scales = scales;
  }
  return p;
}

}  // namespace cupel
