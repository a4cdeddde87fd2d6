/* Loads libdas.so as a language binding does, again and again; test_loading.sh builds it and names the library.
 * Prints what differs from what was expected, and nothing if all is well. */
#include <das/das.h>

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

#define EXPECT(condition) ((condition) ? (void)0 : (void)(failures++, printf("%d: %s\n", __LINE__, #condition)))

/* A function of the library, without the conversion that ISO C forbids. */
#define FUNCTION(type, name) \
    type name;               \
    find(library, #name, &name)

static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    if (address == NULL) {
        failures++;
        printf("%s is not there: %s\n", name, dlerror());
        exit(1);
    }
    memcpy(function, &address, sizeof address);
}

static int entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count;
}

static int find_driver(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (strstr(info->dlpi_name, "libcuda") != NULL || strstr(info->dlpi_name, "libOpenCL") != NULL)
        *(int *)found = 1;
    return 0;
}

static int drivers_are_loaded(void)
{
    int found = 0;
    dl_iterate_phdr(find_driver, &found);
    return found;
}

typedef const char *version_string(void);
typedef das_status device_open(const char *, const das_device_options *, das_device **, das_error *);
typedef void device_destroy(das_device **);
typedef das_status device_count(int64_t *, das_error *);
typedef das_status acquisition_create(das_acquisition **, das_error *);
typedef void acquisition_destroy(das_acquisition **);

/* Once through: load, look, use a little, unload. */
static void round_trip(const char *path, int flags, int leave_open)
{
    void *library = dlopen(path, flags);
    das_device *device = NULL;
    das_acquisition *acquisition = NULL;
    das_error error = DAS_ERROR_INIT;
    if (library == NULL) {
        failures++;
        printf("dlopen: %s\n", dlerror());
        exit(1);
    }
    FUNCTION(version_string *, das_version_string);
    FUNCTION(device_open *, das_device_open);
    FUNCTION(device_destroy *, das_device_destroy);
    FUNCTION(acquisition_create *, das_acquisition_create);
    FUNCTION(acquisition_destroy *, das_acquisition_destroy);
    EXPECT(das_version_string()[0] != '\0');
    EXPECT(das_device_open("cpu", NULL, &device, &error) == DAS_OK);
    EXPECT(das_acquisition_create(&acquisition, &error) == DAS_OK);
    EXPECT(!drivers_are_loaded());
    das_acquisition_destroy(&acquisition);
    if (!leave_open)
        das_device_destroy(&device);
    EXPECT(dlclose(library) == 0);
}

/* Without drivers, or with broken ones, the CPU is still listed and opened. */
static void without_drivers(const char *path)
{
    int64_t count = 0;
    das_error error = DAS_ERROR_INIT;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        failures++;
        printf("dlopen: %s\n", dlerror());
        return;
    }
    FUNCTION(device_count *, das_device_count);
    FUNCTION(device_open *, das_device_open);
    FUNCTION(device_destroy *, das_device_destroy);
    EXPECT(das_device_count(&count, &error) == DAS_OK && count == 1);
    static const char *const names[] = {"cuda", "opencl"};
    for (int i = 0; i < 2; i++) {
        das_device *device = NULL;
        das_status status = das_device_open(names[i], NULL, &device, &error);
        EXPECT(status == DAS_ERROR_NO_DRIVER || status == DAS_ERROR_NOT_BUILT);
        EXPECT(error.status == status && error.message[0] != '\0');
    }
    das_device *device = NULL;
    EXPECT(das_device_open("auto", NULL, &device, &error) == DAS_OK);
    das_device_destroy(&device);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[2], "without-drivers") == 0) {
        without_drivers(argv[1]);
        return failures != 0;
    }
    EXPECT(!drivers_are_loaded());
    round_trip(argv[1], RTLD_NOW | RTLD_LOCAL, 0);
    int files = entries("/proc/self/fd"), threads = entries("/proc/self/task"), maps;
    for (int i = 0; i < 100; i++)
        round_trip(argv[1], i % 2 ? RTLD_LAZY | RTLD_GLOBAL : RTLD_NOW | RTLD_LOCAL, 0);
    EXPECT(entries("/proc/self/fd") == files && entries("/proc/self/task") == threads);
    maps = entries("/proc/self/map_files");
    for (int i = 0; i < 100; i++)
        round_trip(argv[1], RTLD_NOW | RTLD_LOCAL, 0);
    EXPECT(entries("/proc/self/map_files") <= maps + 2);
    /* Its code stays where it is, so that a device left open, with its threads, does no harm. */
    round_trip(argv[1], RTLD_NOW | RTLD_LOCAL, 1);
    EXPECT(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL);
    return failures != 0;
}
