#pragma once

#include "kernels/kernel_table.h"

/// Row operations between the matrices; contracts at KernelTable, numerics in docs/numerics.md.
namespace drafthorse::scalar {

void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* out);
void rope(float* x, const float* cos, const float* sin, std::int64_t half, bool interleaved);
void add(const float* a, float* x, std::int64_t n);
void scale(float s, float* x, std::int64_t n);
void silu_multiply(const float* gate, const float* up, float* out, std::int64_t n);
void softplus(float* x, std::int64_t n);
void softcap(float cap, float* x, std::int64_t n);
void to_float(ElementType type, const std::byte* source, float* out, std::int64_t n);
void kv_write(ElementType kv_type, std::int64_t head_dim, std::int64_t p, const float* key, const float* value,
              std::byte* key_tile, std::byte* value_tile);

}  // namespace drafthorse::scalar
