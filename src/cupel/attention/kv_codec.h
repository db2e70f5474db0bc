// Stored forms of one 512-wide latent row: 448 plain (nope) and 64 rotary (rope) elements.
//
// A NaN or an infinity poisons its quantisation group, as in formats/quantise.h: the scale and the
// codes are NaN, and every element decodes to NaN.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cupel {

inline constexpr std::size_t kKvDim = 512;
inline constexpr std::size_t kNopeDim = 448;
inline constexpr std::size_t kRopeDim = 64;
inline constexpr std::size_t kKvTile = 64;                   // elements that share a scale
inline constexpr std::size_t kKvTiles = kNopeDim / kKvTile;  // 7

// e4m3 with one power-of-two scale a tile (spec 3.5.6: amax floor 1e-4, smallest scale with
// amax / scale <= 448), rope as bf16. `nope` [448] codes, `scales` [7] E8M0, `rope` [64] bf16 at
// any alignment.
void encode_kv_fp8(const float* row, std::uint8_t* nope, std::uint8_t* scales, std::byte* rope);
void decode_kv_fp8(const std::uint8_t* nope, const std::uint8_t* scales, const std::byte* rope,
                   float* row);

// The same quantisation kept in fp32: nope on the e4m3 grid, rope untouched. out may be row.
void fake_quantise_kv(const float* row, float* out);

// All 512 as bf16, 1024 bytes at any alignment.
void encode_kv_bf16(const float* row, std::byte* out);
void decode_kv_bf16(const std::byte* in, float* row);

// An index key or query as e4m3 with one fp32 scale amax / 448, amax floor 1e-4 (serving-stack
// A.2).
inline constexpr std::size_t kIndexDim = 128;
void encode_index_fp8(const float* row, std::uint8_t* codes, float* scale);
// Without the scale: the codes' values. Those of NaN codes mean nothing; the scale that goes with
// them is not finite.
void decode_index_fp8(const std::uint8_t* codes, float* row);

// The indexer's FP4 fake quantisation, groups of 32 (spec 3.8.3). out may be row.
void fake_quantise_index_fp4(const float* row, float* out);

}  // namespace cupel
