/* Vectors of 4 floats for the fast paths: AArch64 Advanced SIMD. */
#ifndef DAS_CPU_VECTOR_NEON_H
#define DAS_CPU_VECTOR_NEON_H

#include <arm_neon.h>
#include <stdint.h>

#define VECTOR_LANES 4
#define VECTOR_TRANSMITS 4
#define VECTOR_HAS_WINDOWS 1

typedef float32x4_t vf;
typedef uint32x4_t vmask;

static inline vf v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, vf v) { vst1q_f32(p, v); }
static inline vf v_set(float x) { return vdupq_n_f32(x); }
static inline vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
static inline vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
static inline vf v_max(vf a, vf b) { return vmaxq_f32(a, b); }
static inline vf v_sqrt(vf a) { return vsqrtq_f32(a); }
static inline vf v_add_j(vf a, vf b)
{
    const float signs[4] = {-1, 1, -1, 1};
    return vfmaq_f32(a, vrev64q_f32(b), vld1q_f32(signs));
}

/* Byte numbers of the entries for a table of bytes: 4 n, 4 n + 1, ... */
static inline uint8x16_t v_bytes(vf y, uint32_t mask)
{
    const uint32x4_t n = vandq_u32(vreinterpretq_u32_f32(y), vdupq_n_u32(mask));
    return vreinterpretq_u8_u32(vmlaq_u32(vdupq_n_u32(0x03020100u), n, vdupq_n_u32(0x04040404u)));
}

/* See cpu_vector_portable.h. */
static inline vf v_lookup1(const float *p, vf y)
{
    return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(vld1q_f32(p)), v_bytes(y, 3)));
}
static inline vf v_pick(vf v, vf y) { return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(v), v_bytes(y, 3))); }
static inline vf v_minus_lane(void)
{
    const float lanes[4] = {0, -1, -2, -3};
    return vld1q_f32(lanes);
}
static inline vf v_lookup2(const float *p, vf y)
{
    const uint8x16x2_t table = {{vreinterpretq_u8_f32(vld1q_f32(p)), vreinterpretq_u8_f32(vld1q_f32(p + 4))}};
    return vreinterpretq_f32_u8(vqtbl2q_u8(table, v_bytes(y, 7)));
}
static inline vf v_gather(const float *p, vf y)
{
    int32_t n[4];
    vst1q_s32(n, vsubq_s32(vreinterpretq_s32_f32(y), vdupq_n_s32(0x4b400000)));
    const float v[4] = {p[n[0]], p[n[1]], p[n[2]], p[n[3]]};
    return vld1q_f32(v);
}

static inline void v_store_whole(float *p, vf y, int32_t scale, int32_t base)
{
    const int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(y), vdupq_n_s32(0x4b400000));
    vst1q_f32(p, vreinterpretq_f32_s32(vmlaq_s32(vdupq_n_s32(base), n, vdupq_n_s32(scale))));
}

static inline vmask v_between(vf x, vf low, vf high) { return vandq_u32(vcgeq_f32(x, low), vcleq_f32(x, high)); }
static inline vf v_keep(vmask m, vf x) { return vreinterpretq_f32_u32(vandq_u32(m, vreinterpretq_u32_f32(x))); }

static inline vf v_load_i16(const int16_t *p) { return vcvtq_f32_s32(vmovl_s16(vld1_s16(p))); }
static inline void v_load_pairs(const float *p, vf *even, vf *odd)
{
    const float32x4x2_t both = vld2q_f32(p);
    *even = both.val[0];
    *odd = both.val[1];
}
static inline void v_load_pairs_i16(const int16_t *p, vf *even, vf *odd)
{
    const int16x4x2_t both = vld2_s16(p);
    *even = vcvtq_f32_s32(vmovl_s16(both.val[0]));
    *odd = vcvtq_f32_s32(vmovl_s16(both.val[1]));
}

#endif
