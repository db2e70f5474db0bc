// Codes and scales of one panel as the kernels read them, from either form of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/kernels/cpu/packed_matrix.h"

namespace cupel {

struct PanelCodes {
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* fp4_scales = nullptr;
  const float* fp8_scales = nullptr;
};

// Panels worked on side by side at most.
inline constexpr std::size_t kPanelSlots = 4;

// Input indices of a matrix in place packed at a time: whole blocks, 4 KiB a panel (8 KiB of F32),
// so that kPanelSlots of them stay in the first-level cache.
constexpr std::size_t in_place_depth(PackedMatrix::Format format) {
  constexpr std::size_t kBlock = PackedMatrix::kFp8Block;
  return format == PackedMatrix::Format::kFp4   ? 4 * kBlock
         : format == PackedMatrix::Format::kFp8 ? 2 * kBlock
                                                : kBlock;
}

// How codes of a matrix in place are packed: as PackedMatrix has them, or, which takes the fewest
// shuffles, as [bytes of a row / 4][16] words of 32 bits in published order.
enum class InPlaceOrder { kPacked, kWords };

// A panel from input index k0, a multiple of 128, on; of a matrix in place, `count` <=
// in_place_depth() input indices packed into the `slot`-th part of this thread's scratch. kWords:
// rows are whole words.
PanelCodes panel_at(const PackedMatrix& w, std::size_t panel, std::size_t k0, std::size_t count,
                    std::size_t slot, InPlaceOrder order = InPlaceOrder::kPacked);

// Asks for codes ahead of their use, once into the second-level cache and once, nearer, into the
// first. Panels side by side are streams of their own, too short for the processor to follow by
// itself: at the end of a panel the distance goes on into those that come next, `side_by_side`
// panels further.
class ReadAhead {
 public:
  ReadAhead(std::size_t panel_bytes, std::size_t side_by_side)
      : panel_bytes_(panel_bytes), jump_((side_by_side - 1) * panel_bytes) {}

  // For the line at `offset` of these panels.
  template <std::size_t Panels>
  [[gnu::always_inline]] void ask(const PanelCodes* panels, std::size_t offset) const {
    const std::size_t near = after(offset + kNear), far = after(offset + kFar);
    for (std::size_t p = 0; p < Panels; ++p) {
      __builtin_prefetch(panels[p].codes + near, 0, 3);
      __builtin_prefetch(panels[p].codes + far, 0, 2);
    }
  }

 private:
  // Measured: with the near distance alone, longer is slower.
  static constexpr std::size_t kNear = 512, kFar = 2048;

  std::size_t after(std::size_t offset) const {
    return offset < panel_bytes_ ? offset : offset + jump_;
  }

  std::size_t panel_bytes_, jump_;
};

}  // namespace cupel
