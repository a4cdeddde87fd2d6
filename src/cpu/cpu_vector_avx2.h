/* Vectors of 8 floats for the fast paths: AVX2, FMA. */
#ifndef DAS_CPU_VECTOR_AVX2_H
#define DAS_CPU_VECTOR_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define VECTOR_LANES 8
#define VECTOR_TRANSMITS 4
#define VECTOR_HAS_WINDOWS 1

typedef __m256 vf;
typedef __m256 vmask;

static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
static inline vf v_set(float x) { return _mm256_set1_ps(x); }
static inline vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf v_add_j(vf a, vf b) { return _mm256_addsub_ps(a, _mm256_permute_ps(b, 0xb1)); }

/* See cpu_vector_portable.h. */
static inline vf v_lookup1(const float *p, vf y)
{
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), _mm256_castps_si256(y));
}
static inline vf v_pick(vf v, vf y) { return _mm256_permutevar8x32_ps(v, _mm256_castps_si256(y)); }
static inline vf v_minus_lane(void) { return _mm256_setr_ps(0, -1, -2, -3, -4, -5, -6, -7); }
static inline vf v_lookup2(const float *p, vf y)
{
    const __m256i n = _mm256_castps_si256(y);
    const vf low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), n);
    const vf high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p + 8), n);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(n, 28)));
}
static inline vf v_gather(const float *p, vf y)
{
    return _mm256_i32gather_ps(p, _mm256_sub_epi32(_mm256_castps_si256(y), _mm256_set1_epi32(0x4b400000)), 4);
}

static inline void v_store_whole(float *p, vf y, int32_t scale, int32_t base)
{
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(y), _mm256_set1_epi32(0x4b400000));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_add_epi32(_mm256_mullo_epi32(n, _mm256_set1_epi32(scale)), _mm256_set1_epi32(base)));
}

static inline vmask v_between(vf x, vf low, vf high)
{
    return _mm256_and_ps(_mm256_cmp_ps(x, low, _CMP_GE_OQ), _mm256_cmp_ps(x, high, _CMP_LE_OQ));
}
static inline vf v_keep(vmask m, vf x) { return _mm256_and_ps(m, x); }

static inline vf v_load_i16(const int16_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
static inline void v_load_pairs(const float *p, vf *even, vf *odd)
{
    const vf a = _mm256_loadu_ps(p), b = _mm256_loadu_ps(p + 8);
    const __m256d e = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), o = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    *even = _mm256_castpd_ps(_mm256_permute4x64_pd(e, 0xd8));
    *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(o, 0xd8));
}
static inline void v_load_pairs_i16(const int16_t *p, vf *even, vf *odd)
{
    const __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)p);
    *even = _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(both, 16), 16));
    *odd = _mm256_cvtepi32_ps(_mm256_srai_epi32(both, 16));
}

#endif
