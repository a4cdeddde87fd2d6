/* Vectors of 16 floats for the fast paths: AVX-512 F, DQ, BW, VL. */
#ifndef DAS_CPU_VECTOR_AVX512_H
#define DAS_CPU_VECTOR_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define VECTOR_LANES 16
#define VECTOR_TRANSMITS 4
#define VECTOR_HAS_WINDOWS 1

typedef __m512 vf;
typedef __mmask16 vmask;

static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
static inline vf v_set(float x) { return _mm512_set1_ps(x); }
static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf v_add_j(vf a, vf b) { return _mm512_fmaddsub_ps(a, _mm512_set1_ps(1.0f), _mm512_permute_ps(b, 0xb1)); }

/* See cpu_vector_portable.h. */
static inline vf v_lookup1(const float *p, vf y)
{
    return _mm512_permutexvar_ps(_mm512_castps_si512(y), _mm512_loadu_ps(p));
}
static inline vf v_pick(vf v, vf y) { return _mm512_permutexvar_ps(_mm512_castps_si512(y), v); }
static inline vf v_minus_lane(void)
{
    return _mm512_setr_ps(0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15);
}
static inline vf v_lookup2(const float *p, vf y)
{
    return _mm512_permutex2var_ps(_mm512_loadu_ps(p), _mm512_castps_si512(y), _mm512_loadu_ps(p + 16));
}
static inline vf v_gather(const float *p, vf y)
{
    return _mm512_i32gather_ps(_mm512_sub_epi32(_mm512_castps_si512(y), _mm512_set1_epi32(0x4b400000)), p, 4);
}

static inline void v_store_whole(float *p, vf y, int32_t scale, int32_t base)
{
    const __m512i n = _mm512_sub_epi32(_mm512_castps_si512(y), _mm512_set1_epi32(0x4b400000));
    _mm512_storeu_si512(p, _mm512_add_epi32(_mm512_mullo_epi32(n, _mm512_set1_epi32(scale)), _mm512_set1_epi32(base)));
}

static inline vmask v_between(vf x, vf low, vf high)
{
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ);
}
static inline vf v_keep(vmask m, vf x) { return _mm512_maskz_mov_ps(m, x); }

static inline vf v_load_i16(const int16_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)));
}
static inline void v_load_pairs(const float *p, vf *even, vf *odd)
{
    const __m512i take = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const vf a = _mm512_loadu_ps(p), b = _mm512_loadu_ps(p + 16);
    *even = _mm512_permutex2var_ps(a, take, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(take, _mm512_set1_epi32(1)), b);
}
static inline void v_load_pairs_i16(const int16_t *p, vf *even, vf *odd)
{
    const __m512i both = _mm512_loadu_si512(p);
    *even = _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(both, 16), 16));
    *odd = _mm512_cvtepi32_ps(_mm512_srai_epi32(both, 16));
}

#endif
