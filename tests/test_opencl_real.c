/* The arithmetic that OpenCL kernels use on devices without double: das_real as a pair of floats,
 * compiled here as C and compared with double. */
#define DAS_KERNEL_FLOAT_FLOAT
#include "../src/opencl/opencl_real.cl"

#include "kernel.h"
#include "testing.h"

#include <math.h>

static das_real of_double(double x)
{
    const float hi = (float)x;
    return das_real_pair(hi, (float)(x - (double)hi));
}

static double to_double(das_real x)
{
    return (double)x.hi + (double)x.lo;
}

static void near_to(das_real got, double want, double scale, const char *what)
{
    const double error = fabs(to_double(got) - want);
    EXPECT_MSG(error <= 3e-13 * scale, "%s: %.17g, expected %.17g", what, to_double(got), want);
    EXPECT_MSG(got.hi + got.lo == got.hi, "%s: %a + %a is not normalised", what, (double)got.hi, (double)got.lo);
}

static void operations(test_rng *rng)
{
    test_begin("pairs of floats: add, subtract, multiply, root");
    for (int i = 0; i < 200000; i++) {
        const double scale = pow(10, test_rng_uniform(rng, -6, 7));
        const double a = to_double(of_double(test_rng_uniform(rng, -1, 1) * scale));
        const double b = to_double(of_double(test_rng_uniform(rng, -1, 1) * pow(10, test_rng_uniform(rng, -6, 7))));
        const das_real x = of_double(a), y = of_double(b);
        near_to(das_real_add(x, y), a + b, fabs(a) + fabs(b), "a + b");
        near_to(das_real_sub(x, y), a - b, fabs(a) + fabs(b), "a - b");
        near_to(das_real_mul(x, y), a * b, fabs(a * b), "a b");
        near_to(das_real_sqrt(of_double(fabs(a))), sqrt(to_double(of_double(fabs(a)))), sqrt(fabs(a)), "root of a");
        EXPECT_INT(das_real_less(x, y), a < b);
        EXPECT_INT(das_real_less_equal(x, y), a <= b);
        EXPECT_INT(das_real_less_equal(x, x), 1);
        EXPECT_INT(das_real_less(x, x), 0);
    }
    near_to(das_real_sqrt(of_double(0)), 0, 1, "root of 0");
    test_end();

    test_begin("pairs of floats: cancellation keeps the small part");
    near_to(das_real_sub(of_double(1e7 + 0.3), of_double(1e7)), to_double(of_double(1e7 + 0.3)) - 1e7, 1, "1e7 + 0.3 - 1e7");
    EXPECT(to_double(das_real_sub(of_double(12345.678), of_double(12345.678))) == 0);
    test_end();

    test_begin("pairs of floats: NaN compares false");
    const das_real nan = das_real_pair(NAN, 0), one = of_double(1);
    EXPECT_INT(das_real_less_equal(nan, nan) + das_real_less(nan, one) + das_real_less_equal(one, nan), 0);
    EXPECT_INT(das_sample_position(DAS_KERNEL_LINEAR, nan, of_double(99), 1).inside, 0);
    test_end();
}

static void whole_numbers(test_rng *rng)
{
    static const double bases[] = {0,     1,       2,       3,       399,      400,      4095,     4096,
                                   65535, 8388607, 8388608, 8388609, 16777215, 16777216, 16777217, 4e9};
    static const double parts[] = {0, 0.25, 0.4999999, 0.5, 0.5000001, 0.75, 1 - 1e-7};
    test_begin("pairs of floats: floor, round half to even, index");
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
            for (int sign = -1; sign <= 1; sign += 2) {
                const das_real x = of_double(sign * (bases[i] + parts[k]));
                const double value = to_double(x);
                EXPECT_MSG(to_double(das_real_floor(x)) == floor(value), "floor(%.17g)", value);
                EXPECT_MSG(to_double(das_real_rint(x)) == rint(value), "rint(%.17g) gives %.17g", value,
                           to_double(das_real_rint(x)));
                EXPECT_INT(das_real_index(das_real_rint(x)), (int64_t)rint(value));
            }
    for (int i = 0; i < 200000; i++) {
        const das_real x = of_double(test_rng_uniform(rng, -1, 1) * pow(10, test_rng_uniform(rng, 0, 9)));
        EXPECT(to_double(das_real_floor(x)) == floor(to_double(x)));
        EXPECT(to_double(das_real_rint(x)) == rint(to_double(x)));
    }
    /* Just beside a half: the low part decides. */
    EXPECT(to_double(das_real_rint(das_real_pair(2.5f, 1e-9f))) == 3);
    EXPECT(to_double(das_real_rint(das_real_pair(2.5f, -1e-9f))) == 2);
    EXPECT(to_double(das_real_rint(das_real_pair(3.5f, -1e-9f))) == 3);
    EXPECT(to_double(das_real_rint(das_real_pair(2.5f, 0))) == 2);
    EXPECT(to_double(das_real_floor(das_real_pair(400.0f, -1e-9f))) == 399);
    EXPECT(to_double(das_real_rint(das_real_pair(8388609.0f, 0.5f))) == 8388610);
    EXPECT(to_double(das_real_rint(das_real_pair(8388608.0f, 0.5f))) == 8388608);
    EXPECT(to_double(das_real_rint(das_real_pair(8388609.0f, -0.5f))) == 8388608);
    test_end();
}

static das_vector vector(const double v[3])
{
    das_vector r;
    r.x = of_double(v[0]);
    r.y = of_double(v[1]);
    r.z = of_double(v[2]);
    return r;
}

static double distance(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

static void delays(test_rng *rng)
{
    const double c = 1540, fs = 40e6, per_m = fs / c;
    double worst = 0;
    test_begin("pairs of floats: delays of kernel.h to 1e-8 samples of 8000");
    for (int i = 0; i < 100000; i++) {
        const double p[3] = {test_rng_uniform(rng, -0.1, 0.1), test_rng_uniform(rng, -0.05, 0.05),
                             test_rng_uniform(rng, 0, 0.3)};
        const double e[3] = {test_rng_uniform(rng, -0.05, 0.05), test_rng_uniform(rng, -0.05, 0.05), 0};
        const double angle = test_rng_uniform(rng, -0.5, 0.5), n[3] = {sin(angle), 0, cos(angle)};
        const double shift = test_rng_uniform(rng, -100, 100), tolerance = 1e-3 * c / fs;
        const double dot = (p[0] - e[0]) * n[0] + (p[1] - e[1]) * n[1] + (p[2] - e[2]) * n[2];
        double want[4] = {distance(p, e), dot, dot >= -tolerance ? distance(p, e) : -distance(p, e), 0};
        for (int wave = 0; wave < 4; wave++) {
            const das_real got = das_transmit_delay(wave, vector(p), vector(e), vector(n), of_double(tolerance),
                                                    of_double(per_m), of_double(shift));
            worst = fmax(worst, fabs(to_double(got) - (want[wave] * per_m + shift)));
        }
        worst = fmax(worst, fabs(to_double(das_receive_delay(vector(p), vector(e), of_double(per_m), of_double(shift))) -
                                 (distance(p, e) * per_m + shift)));
    }
    EXPECT_MSG(worst <= 1e-8, "off by %.3g", worst);
    test_end();

    test_begin("pairs of floats: phases to 1e-6 radians at 400 us and 15 MHz");
    worst = 0;
    for (int i = 0; i < 100000; i++) {
        const double s = to_double(of_double(test_rng_uniform(rng, 0, 16000))), per_sample = 15e6 / fs, turns = s * per_sample;
        const das_rotation got = das_phase_rotation(of_double(s), of_double(per_sample), of_double(0));
        const double angle = 6.283185307179586477 * (turns - rint(turns));
        worst = fmax(worst, hypot((double)got.re - cos(angle), (double)got.im - sin(angle)));
    }
    EXPECT_MSG(worst <= 1e-6, "off by %.3g", worst);
    test_end();

    test_begin("pairs of floats: the edges of records and apertures");
    EXPECT_INT(das_sample_position(DAS_KERNEL_LINEAR, of_double(399.0000000001), of_double(399), 0).inside, 1);
    EXPECT_INT(das_sample_position(DAS_KERNEL_LINEAR, of_double(399.0009), of_double(399), 0).inside, 1);
    EXPECT_INT(das_sample_position(DAS_KERNEL_LINEAR, of_double(399.0011), of_double(399), 0).inside, 0);
    EXPECT_INT(das_sample_position(DAS_KERNEL_LINEAR, of_double(-0.0009), of_double(399), 0).inside, 1);
    EXPECT_INT(das_sample_position(DAS_KERNEL_LINEAR, of_double(-0.0011), of_double(399), 0).inside, 0);
    EXPECT_INT(das_sample_position(DAS_KERNEL_NEAREST, of_double(399.99999999999994), of_double(999), 0).sample, 400);
    const double at[3] = {0, 0, 15e-3}, up[3] = {0, 0, 1}, tolerance = 1e-3 * 1500 / 20e6;
    const double x[3] = {4.9e-3, 5.0e-3, 5.1e-3}; /* f-number 1.5: half the aperture is 5 mm */
    for (int i = 0; i < 3; i++) {
        const double e[3] = {x[i], 0, 0};
        const float q = das_aperture(vector(at), vector(e), vector(up), of_double(1 / 3.0), of_double(tolerance));
        EXPECT_INT(q >= 0, i < 2);
    }
    test_end();
}

int main(int argc, char **argv)
{
    test_rng rng = test_rng_seeded(test_seed(argc, argv, 20261130));
    operations(&rng);
    whole_numbers(&rng);
    delays(&rng);
    return test_finish();
}
