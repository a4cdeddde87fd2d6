#include "png_file.h"

#include "checked.h"

#ifdef DAS_HAVE_PNG
#include <png.h>

static void on_error(png_structp png, png_const_charp message)
{
    const char *path = png_get_error_ptr(png);
    fail("%s: writing failed: %s", path, message);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

void png_check(uint64_t width, uint64_t height)
{
    if (width > PNG_UINT_31_MAX || height > PNG_UINT_31_MAX)
        fail("OUT.png: %llu x %llu pixels, expected at most 2147483647 a side", (unsigned long long)width,
             (unsigned long long)height);
}

void png_write(struct output_file *output, uint64_t width, uint64_t height, const unsigned char *pixels)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, output->path, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info)
        fail("%s: libpng could not be started", output->path);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_init_io(png, output->file);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (uint64_t row = 0; row < height; row++)
        png_write_row(png, pixels + row * width);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}
#else
void png_check(uint64_t width, uint64_t height)
{
    (void)width;
    (void)height;
    fail("OUT.png: this program was built without libpng, expected OUT.npy");
}

void png_write(struct output_file *output, uint64_t width, uint64_t height, const unsigned char *pixels)
{
    (void)output;
    (void)pixels;
    png_check(width, height);
}
#endif
