/* Vectors of 4 floats for the fast paths, in the compilers' own vector types: any processor. */
#ifndef DAS_CPU_VECTOR_PORTABLE_H
#define DAS_CPU_VECTOR_PORTABLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VECTOR_LANES 4
#define VECTOR_TRANSMITS 4 /* transmits that share one look at a receive delay */
#define VECTOR_HAS_WINDOWS 0 /* whether v_pick() and v_minus_lane() exist: a permute of one vector; 0, -1, -2, ... */

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef vi vmask;

static inline vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void v_store(float *p, vf v) { memcpy(p, &v, sizeof v); }
static inline vf v_set(float x) { return (vf){x, x, x, x}; }
static inline vf v_add(vf a, vf b) { return a + b; }
static inline vf v_sub(vf a, vf b) { return a - b; }
static inline vf v_mul(vf a, vf b) { return a * b; }
static inline vf v_fma(vf a, vf b, vf c) { return a * b + c; }
static inline vf v_div(vf a, vf b) { return a / b; }
static inline vf v_max(vf a, vf b) { return (vf)(((vi)a & (a > b)) | ((vi)b & ~(a > b))); }
static inline vf v_sqrt(vf a) { return (vf){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])}; }
/* a + j b of complex numbers, real parts first. */
static inline vf v_add_j(vf a, vf b) { return (vf){a[0] - b[1], a[1] + b[0], a[2] - b[3], a[3] + b[2]}; }

/* Table entries p[n], n being the low bits of y, which is a whole number plus VECTOR_MAGIC. The first looks at
 * VECTOR_LANES entries, the second at twice as many, the third at any. */
static inline vf v_gather(const float *p, vf y)
{
    const vi n = (vi)y - 0x4b400000;
    return (vf){p[n[0]], p[n[1]], p[n[2]], p[n[3]]};
}
static inline vf v_lookup1(const float *p, vf y) { return v_gather(p, y); }
static inline vf v_lookup2(const float *p, vf y) { return v_gather(p, y); }

/* The whole numbers times scale, plus base, as bits of int32_t. */
static inline void v_store_whole(float *p, vf y, int32_t scale, int32_t base)
{
    const vi n = ((vi)y - 0x4b400000) * scale + base;
    memcpy(p, &n, sizeof n);
}

static inline vmask v_between(vf x, vf low, vf high) { return (x >= low) & (x <= high); }
static inline vf v_keep(vmask m, vf x) { return (vf)((vi)x & m); }

static inline vf v_load_i16(const int16_t *p) { return (vf){(float)p[0], (float)p[1], (float)p[2], (float)p[3]}; }
static inline void v_load_pairs(const float *p, vf *even, vf *odd)
{
    *even = (vf){p[0], p[2], p[4], p[6]};
    *odd = (vf){p[1], p[3], p[5], p[7]};
}
static inline void v_load_pairs_i16(const int16_t *p, vf *even, vf *odd)
{
    *even = (vf){(float)p[0], (float)p[2], (float)p[4], (float)p[6]};
    *odd = (vf){(float)p[1], (float)p[3], (float)p[5], (float)p[7]};
}

#endif
