#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double real;

static const real oracle_pi = 3.14159265358979323846264338327950288L;

/* Everything of one element or transmit that depends on the point but not on the pair. */
typedef struct {
    bool path;     /* false: contributes nothing */
    bool edge;     /* the decision behind path or tau is open */
    bool vanishing; /* weight so small that single precision may take it for 0 */
    real tau, weight;
    real flat; /* weight without the aperture's window */
} leg;

static real dot(const real a[3], const real b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static real norm(const real a[3])
{
    return sqrtl(dot(a, a));
}

static void difference(const real a[3], const double b[3], real out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = a[i] - (real)b[i];
}

static void widen(const double a[3], real out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = (real)a[i];
}

/* ---- samples ---- */

bool oracle_is_complex(oracle_type type)
{
    return type == ORACLE_CI16 || type == ORACLE_CF16 || type == ORACLE_CF32;
}

int64_t oracle_type_bytes(oracle_type type)
{
    switch (type) {
    case ORACLE_I8:
    case ORACLE_U8:
        return 1;
    case ORACLE_I16:
    case ORACLE_U16:
    case ORACLE_F16:
        return 2;
    case ORACLE_F32:
    case ORACLE_CI16:
    case ORACLE_CF16:
        return 4;
    case ORACLE_F64:
    case ORACLE_CF32:
        return 8;
    }
    return 0;
}

double oracle_half_to_double(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double magnitude;
    if (exponent == 31)
        magnitude = fraction != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, -24);
    else
        magnitude = ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

uint16_t oracle_double_to_half(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value), units;
    int exponent;
    if (isnan(value))
        return 0x7e00;
    if (magnitude >= 65520.0)
        return sign | 0x7c00;
    if (magnitude < ldexp(1, -14))
        return (uint16_t)(sign | (int)nearbyint(ldexp(magnitude, 24)));
    frexp(magnitude, &exponent); /* magnitude in [2^(exponent-1), 2^exponent) */
    units = nearbyint(ldexp(magnitude, 11 - exponent)); /* 1024..2048; 2048 carries into the exponent */
    return (uint16_t)(sign | (((exponent + 14) << 10) + (int)units - 1024));
}

static double half_at(const void *data, int64_t index)
{
    uint16_t bits;
    memcpy(&bits, (const unsigned char *)data + 2 * index, sizeof bits);
    return oracle_half_to_double(bits);
}

void oracle_sample(const oracle_problem *problem, int64_t index, double value[2])
{
    const void *data = problem->data;
    value[1] = 0;
    switch (problem->type) {
    case ORACLE_I8:
        value[0] = ((const int8_t *)data)[index];
        break;
    case ORACLE_U8:
        value[0] = ((const uint8_t *)data)[index];
        break;
    case ORACLE_I16:
        value[0] = ((const int16_t *)data)[index];
        break;
    case ORACLE_U16:
        value[0] = ((const uint16_t *)data)[index];
        break;
    case ORACLE_F16:
        value[0] = half_at(data, index);
        break;
    case ORACLE_F32:
        value[0] = (double)((const float *)data)[index];
        break;
    case ORACLE_F64:
        value[0] = ((const double *)data)[index];
        if (!problem->double_precision)
            value[0] = (double)(float)value[0];
        break;
    case ORACLE_CI16:
        value[0] = ((const int16_t *)data)[2 * index];
        value[1] = ((const int16_t *)data)[2 * index + 1];
        break;
    case ORACLE_CF16:
        value[0] = half_at(data, 2 * index);
        value[1] = half_at(data, 2 * index + 1);
        break;
    case ORACLE_CF32:
        value[0] = (double)((const float *)data)[2 * index];
        value[1] = (double)((const float *)data)[2 * index + 1];
        break;
    }
    value[0] -= problem->offset;
    if (oracle_is_complex(problem->type))
        value[1] -= problem->offset;
}

/* ---- points ---- */

int64_t oracle_points(const oracle_problem *problem)
{
    return problem->grid.count[0] * problem->grid.count[1] * problem->grid.count[2];
}

int64_t oracle_values(const oracle_problem *problem)
{
    return (problem->keep_transmit ? problem->transmits : 1) * (problem->keep_receive ? problem->receives : 1);
}

void oracle_position(const oracle_problem *problem, int64_t point, long double position[3])
{
    const oracle_grid *grid = &problem->grid;
    int64_t index[3];
    index[0] = point % grid->count[0];
    index[1] = point / grid->count[0] % grid->count[1];
    index[2] = point / grid->count[0] / grid->count[1];
    switch (grid->kind) {
    case ORACLE_CARTESIAN:
        for (int i = 0; i < 3; i++) {
            position[i] = (real)grid->origin[i];
            for (int axis = 0; axis < 3; axis++)
                position[i] += (real)index[axis] * (real)grid->step[axis][i];
        }
        break;
    case ORACLE_POLAR: {
        real theta = (real)grid->axis[0][index[0]], phi = (real)grid->axis[1][index[1]];
        real r = (real)grid->axis[2][index[2]];
        position[0] = (real)grid->origin[0] + r * sinl(theta) * cosl(phi);
        position[1] = (real)grid->origin[1] + r * sinl(phi);
        position[2] = (real)grid->origin[2] + r * cosl(theta) * cosl(phi);
        break;
    }
    case ORACLE_POINTS:
        widen(grid->point[point], position);
        break;
    }
}

/* ---- transmit and receive ---- */

static leg transmit_leg(const oracle_problem *problem, int64_t t, int64_t point, const real p[3])
{
    const oracle_transmit *transmit = &problem->transmit[t];
    real c = (real)problem->sound_speed_m_s, sample_m = c / (real)problem->sampling_frequency_hz;
    real a[3], b[3], o[3];
    leg out = {true, false, false, 0, (real)transmit->weight, 0};

    widen(transmit->origin, o);
    difference(p, transmit->vector, a);
    if (problem->transmit_arrival_s != NULL) {
        double arrival = problem->transmit_arrival_s[t * oracle_points(problem) + point];
        out.path = !isnan(arrival);
        out.tau = out.path ? (real)arrival : 0;
    } else {
        switch (transmit->wave) {
        case ORACLE_ELEMENT:
            out.tau = norm(a) / c;
            break;
        case ORACLE_PLANE:
            widen(transmit->vector, b);
            difference(p, transmit->origin, a);
            out.tau = dot(a, b) / norm(b) / c;
            break;
        case ORACLE_DIVERGING:
            difference(o, transmit->vector, b);
            out.tau = (norm(a) - norm(b)) / c;
            break;
        case ORACLE_FOCUSED: {
            real beyond, plane = -1e-3L * sample_m;
            widen(transmit->vector, b);
            for (int i = 0; i < 3; i++)
                b[i] -= o[i];
            beyond = dot(a, b) / norm(b);
            out.tau = (norm(b) + (beyond >= plane ? norm(a) : -norm(a))) / c;
            /* At the focus itself both signs give the same time. */
            out.edge = fabsl(beyond - plane) < (real)ORACLE_EDGE * sample_m && norm(a) > 1e-9L * sample_m;
            break;
        }
        case ORACLE_ONE_WAY:
            out.tau = 0;
            break;
        }
    }
    if (problem->transmit_weight != NULL)
        out.weight *= (real)problem->transmit_weight[t * oracle_points(problem) + point];
    out.flat = out.weight;
    out.path = out.path && out.weight != 0;
    return out;
}

static real window_weight(const oracle_problem *problem, real q)
{
    real tukey = (real)problem->tukey;
    switch (problem->window) {
    case ORACLE_RECT:
        return 1;
    case ORACLE_HANN:
        return q == 1 ? 0 : (1 + cosl(oracle_pi * q)) / 2;
    case ORACLE_HAMMING:
        return 0.54L + 0.46L * cosl(oracle_pi * q);
    case ORACLE_TUKEY:
        if (tukey == 0 || q <= 1 - tukey)
            return 1;
        return q == 1 ? 0 : (1 + cosl(oracle_pi * (q - 1 + tukey) / tukey)) / 2;
    case ORACLE_WINDOW_TABLE: {
        real position = q * (real)(problem->window_values - 1), fraction;
        int64_t i = (int64_t)floorl(position);
        if (i >= problem->window_values - 1)
            return (real)problem->window_value[problem->window_values - 1];
        fraction = position - (real)i;
        return (real)problem->window_value[i] * (1 - fraction) + (real)problem->window_value[i + 1] * fraction;
    }
    }
    return 0;
}

static leg receive_leg(const oracle_problem *problem, int64_t r, int64_t point, const real p[3])
{
    const oracle_element *element = &problem->element[r];
    real c = (real)problem->sound_speed_m_s, sample_m = c / (real)problem->sampling_frequency_hz;
    real a[3], u[3], across[3], length;
    leg out = {true, false, false, 0, (real)element->weight, 0};

    difference(p, element->position, a);
    if (problem->receive_arrival_s != NULL) {
        double arrival = problem->receive_arrival_s[r * oracle_points(problem) + point];
        out.path = !isnan(arrival);
        out.tau = out.path ? (real)arrival : 0;
    } else {
        out.tau = norm(a) / c;
    }
    out.flat = out.weight;
    if (problem->receive_weight != NULL) {
        out.flat = out.weight *= (real)problem->receive_weight[r * oracle_points(problem) + point];
    } else if (problem->f_number > 0) {
        real e = 1e-3L * sample_m, margin = (real)ORACLE_EDGE * sample_m, h, l, half_width, q;
        widen(element->normal, u);
        length = norm(u);
        for (int i = 0; i < 3; i++)
            u[i] /= length;
        h = dot(a, u);
        for (int i = 0; i < 3; i++)
            across[i] = a[i] - h * u[i];
        l = norm(across);
        half_width = h / (2 * (real)problem->f_number);
        out.edge = fabsl(h - e) < margin ? l <= half_width + 2 * e
                                         : h > e && fabsl(l - half_width - e) < margin;
        if (h > e && l <= half_width + e) {
            real weight;
            q = l / half_width;
            if (q > 1)
                q = 1;
            weight = window_weight(problem, q);
            out.vanishing = fabsl(weight) < 1e-6L && fabsl(1 - q) < 2e-3L;
            out.weight *= weight;
        } else {
            out.path = false;
        }
    }
    out.path = out.path && out.weight != 0;
    return out;
}

/* ---- one trace at one sample position ---- */

typedef struct {
    const oracle_problem *problem;
    int64_t start; /* element index of sample 0 */
} record;

/* A sample of the record; 0 outside. */
static void tap(const record *of, int64_t n, real value[2])
{
    double sample[2];
    value[0] = value[1] = 0;
    if (n < 0 || n >= of->problem->samples)
        return;
    oracle_sample(of->problem, of->start + n * of->problem->sample_stride, sample);
    value[0] = (real)sample[0];
    value[1] = (real)sample[1];
}

/* floor() of what fits an integer. */
static int64_t floor_of(real s)
{
    int64_t i = (int64_t)s;
    return (real)i > s ? i - 1 : i;
}

static int64_t round_half_even(real s)
{
    int64_t n = floor_of(s);
    real fraction = s - (real)n;
    if (fraction > 0.5L || (fraction == 0.5L && n % 2 != 0))
        n++;
    return n;
}

static real sinc(real x)
{
    return x == 0 ? 1 : (real)sin((double)(oracle_pi * x)) / (oracle_pi * x);
}

/* The value is the sum of weight[k] * data[first + k]. */
typedef struct {
    int64_t first;
    int count;
    real weight[6];
} taps;

static taps quadratic(int64_t n, real u)
{
    taps out = {n - 1, 3, {u * (u - 1) / 2, 1 - u * u, u * (u + 1) / 2}};
    return out;
}

static taps interpolation_taps(oracle_interpolation interpolation, real s)
{
    int64_t i = floor_of(s), n = round_half_even(s);
    real t = s - (real)i, t2 = t * t, t3 = t2 * t, sum = 0;
    taps out = {n, 1, {1}};
    switch (interpolation) {
    case ORACLE_NEAREST:
        break;
    case ORACLE_LINEAR:
        out.first = i;
        out.count = 2;
        out.weight[0] = 1 - t;
        out.weight[1] = t;
        break;
    case ORACLE_QUADRATIC:
        return quadratic(n, s - (real)n);
    case ORACLE_CUBIC:
        out.first = i - 1;
        out.count = 4;
        out.weight[0] = -t / 2 + t2 - t3 / 2;
        out.weight[1] = 1 - 5 * t2 / 2 + 3 * t3 / 2;
        out.weight[2] = t / 2 + 2 * t2 - 3 * t3 / 2;
        out.weight[3] = -t2 / 2 + t3 / 2;
        break;
    case ORACLE_LANCZOS3:
        out.first = i - 2;
        out.count = 6;
        for (int k = -2; k <= 3; k++) {
            real x = t - (real)k;
            out.weight[k + 2] = t == 0 && k != 0 ? 0 : sinc(x) * sinc(x / 3);
            sum += out.weight[k + 2];
        }
        for (int k = 0; k < 6; k++)
            out.weight[k] /= sum;
        break;
    }
    return out;
}

static void weigh(const record *of, const taps *with, real value[2])
{
    value[0] = value[1] = 0;
    for (int k = 0; k < with->count; k++) {
        real sample[2];
        if (with->weight[k] == 0)
            continue;
        tap(of, with->first + k, sample);
        value[0] += with->weight[k] * sample[0];
        value[1] += with->weight[k] * sample[1];
    }
}

/* How far the value jumps at the tie next to s, 0 when s is not near one or nothing jumps. */
static real tie_jump(const record *of, real s)
{
    real low[2], high[2], d[2];
    int64_t below = floor_of(s);
    taps with;
    if (fabsl(s - (real)below - 0.5L) >= (real)ORACLE_TIE)
        return 0;
    if (of->problem->interpolation == ORACLE_NEAREST) {
        tap(of, below, low);
        tap(of, below + 1, high);
    } else if (of->problem->interpolation == ORACLE_QUADRATIC) {
        with = quadratic(below, 0.5L);
        weigh(of, &with, low);
        with = quadratic(below + 1, -0.5L);
        weigh(of, &with, high);
    } else {
        return 0;
    }
    d[0] = high[0] - low[0];
    d[1] = high[1] - low[1];
    return sqrtl(d[0] * d[0] + d[1] * d[1]);
}

/* Whether s is in the record (s may move onto its end), and whether that could have gone the other way. */
static bool in_record(const oracle_problem *problem, real *s, bool *edge)
{
    real last = (real)(problem->samples - 1);
    *edge = false;
    if (problem->clamp) {
        *s = *s < 0 ? 0 : *s > last ? last : *s;
        return true;
    }
    if (problem->interpolation == ORACLE_NEAREST) {
        int64_t n;
        /* Far outside, where the position might not even fit an integer. */
        if (!(*s > -2 && *s < last + 2))
            return false;
        n = round_half_even(*s);
        /* The value's jump there counts as a tie; only a divisor would not know. */
        *edge = problem->normalization != ORACLE_NO_DIVISION &&
                (fabsl(*s + 0.5L) < (real)ORACLE_TIE || fabsl(*s - last - 0.5L) < (real)ORACLE_TIE);
        return n >= 0 && n < problem->samples;
    }
    *edge = fabsl(*s + 1e-3L) < (real)ORACLE_EDGE || fabsl(*s - last - 1e-3L) < (real)ORACLE_EDGE;
    if (*s < -1e-3L || *s > last + 1e-3L)
        return false;
    *s = *s < 0 ? 0 : *s > last ? last : *s;
    return true;
}

/* ---- sums ---- */

typedef struct {
    real re, im, power, slack, divisor;
    real flat; /* sum of |weight| without window */
} sum;

/* Six taps is the widest interpolation. */
static void touch(const record *of, real s)
{
    int64_t i = floor_of(s);
    for (int64_t n = i - 2; n <= i + 3; n++)
        if (n >= 0 && n < of->problem->samples)
            of->problem->touched[of->start + n * of->problem->sample_stride] = 1;
}

static void add_pair(const oracle_problem *problem, const leg *transmit, const leg *receive, int64_t t, int64_t r,
                     real weight, int64_t start, int64_t frames, oracle_value *value, sum *total, int64_t values)
{
    const oracle_transmit *event = &problem->transmit[t];
    real tau, s, full, phase_re = 1, phase_im = 0;
    bool edge;
    taps with;

    full = weight * transmit->weight * receive->weight;
    if (weight == 0)
        return;
    if (!transmit->path || !receive->path) {
        /* Open only if the other decision would bring the pair in. */
        if ((transmit->path || transmit->edge) && (receive->path || receive->edge))
            for (int64_t f = 0; f < frames; f++)
                value[f * values].edges++;
        return;
    }
    tau = transmit->tau + receive->tau + (real)event->delay_s + (real)problem->element[r].delay_s;
    s = (tau - (real)event->start_time_s) * (real)problem->sampling_frequency_hz;
    if (!in_record(problem, &s, &edge)) {
        if (edge)
            for (int64_t f = 0; f < frames; f++)
                value[f * values].edges++;
        return;
    }
    edge = edge || transmit->edge || receive->edge ||
           (receive->vanishing && problem->normalization == ORACLE_BY_COUNT);
    if (problem->demodulation_frequency_hz != 0) {
        real turns = (real)problem->demodulation_frequency_hz *
                     (problem->phase_at_sample_0 ? tau - (real)event->start_time_s : tau);
        turns -= fabsl(turns) < 1e18L ? (real)floor_of(turns) : floorl(turns);
        phase_re = (real)cos((double)(2 * oracle_pi * turns));
        phase_im = (real)sin((double)(2 * oracle_pi * turns));
    }
    with = interpolation_taps(problem->interpolation, s);
    for (int64_t f = 0; f < frames; f++) {
        record of = {problem, start + f * problem->frame_stride};
        sum *into = &total[f * values];
        real v[2] = {0, 0};
        weigh(&of, &with, v);
        if (problem->touched != NULL)
            touch(&of, s);
        into->re += full * (v[0] * phase_re - v[1] * phase_im);
        into->im += full * (v[0] * phase_im + v[1] * phase_re);
        into->power += full * full * (v[0] * v[0] + v[1] * v[1]);
        into->slack += fabsl(full) * tie_jump(&of, s);
        into->flat += fabsl(weight * transmit->flat * receive->flat);
        into->divisor += problem->normalization == ORACLE_BY_COUNT ? 1 : full;
        value[f * values].terms++;
        value[f * values].edges += edge;
    }
}

bool oracle_point(const oracle_problem *problem, int64_t point, int64_t first_frame, int64_t frames,
                  oracle_value *value)
{
    int64_t values = oracle_values(problem), first = problem->first_transmit, last = problem->last_transmit;
    int64_t kept_receives = problem->keep_receive ? problem->receives : 1;
    int64_t base = problem->first + first_frame * problem->frame_stride;
    leg *transmit = calloc((size_t)problem->transmits, sizeof *transmit);
    leg *receive = calloc((size_t)problem->receives, sizeof *receive);
    sum *total = calloc((size_t)(frames * values), sizeof *total);
    real p[3];
    bool ok = transmit != NULL && receive != NULL && total != NULL;

    if (first == 0 && last == 0)
        last = problem->transmits;
    if (ok) {
        memset(value, 0, (size_t)(frames * values) * sizeof *value);
        oracle_position(problem, point, p);
        for (int64_t t = 0; t < problem->transmits; t++)
            transmit[t] = transmit_leg(problem, t, point, p);
        for (int64_t r = 0; r < problem->receives; r++)
            receive[r] = receive_leg(problem, r, point, p);
    }
    for (int64_t k = 0; ok && k < (problem->trace != NULL ? problem->traces : problem->transmits * problem->receives);
         k++) {
        int64_t t, r, at, start;
        real weight = 1;
        if (problem->trace != NULL) {
            t = problem->trace[k].transmit;
            r = problem->trace[k].receive;
            weight = (real)problem->trace[k].weight;
            start = base + k * problem->trace_stride;
        } else {
            t = k / problem->receives;
            r = k % problem->receives;
            if (problem->pair_weight != NULL)
                weight = (real)problem->pair_weight[k];
            start = base + t * problem->transmit_stride + r * problem->receive_stride;
        }
        if (t < first || t >= last)
            continue;
        at = (problem->keep_transmit ? t * kept_receives : 0) + (problem->keep_receive ? r : 0);
        add_pair(problem, &transmit[t], &receive[r], t, r, weight, start, frames, value + at, total + at, values);
    }
    for (int64_t i = 0; ok && i < frames * values; i++) {
        real divisor = problem->normalization == ORACLE_NO_DIVISION ? 1 : total[i].divisor;
        /* The window's cosine leaves a divisor so small few digits in single precision. */
        if (problem->normalization == ORACLE_BY_WEIGHTS && problem->window != ORACLE_RECT &&
            fabsl(divisor) < 0.01L * total[i].flat)
            value[i].edges++;
        if (divisor == 0)
            continue;
        value[i].re = (double)(total[i].re / divisor);
        value[i].im = (double)(total[i].im / divisor);
        value[i].power = (double)(total[i].power / (divisor * divisor));
        value[i].slack = (double)(total[i].slack / fabsl(divisor));
    }
    free(total);
    free(receive);
    free(transmit);
    return ok;
}

bool oracle_image(const oracle_problem *problem, int64_t frames, oracle_value *value)
{
    int64_t values = oracle_values(problem), points = oracle_points(problem);
    oracle_value *one = calloc((size_t)(frames * values), sizeof *one);
    bool ok = one != NULL;
    for (int64_t point = 0; ok && point < points; point++) {
        ok = oracle_point(problem, point, 0, frames, one);
        for (int64_t i = 0; ok && i < frames * values; i++)
            value[i * points + point] = one[i];
    }
    free(one);
    return ok;
}
