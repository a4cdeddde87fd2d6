/* A small pool of threads that belongs to a device and starts when it is first needed. */
#include "frontend.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct das_job {
    das_task_function *task;
    void *argument;
    int64_t count;
    int64_t next;     /* first index not yet taken */
    int64_t finished; /* tasks that have returned */
    pthread_cond_t done;
    struct das_job *following;
} das_job;

struct das_pool {
    pid_t process;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    das_job *jobs; /* with indices left to take */
    bool stopping;
    int64_t thread_count;
    pthread_t threads[];
};

static void run_task(das_task_function *task, void *argument, int64_t index)
{
    fenv_t saved;
    das_float_environment_enter(&saved);
    task(argument, index);
    das_float_environment_leave(&saved);
}

/* Takes one index of the job and runs it; the mutex is held on entry and exit. */
static void take_one(struct das_pool *pool, das_job *job)
{
    int64_t index = job->next++;
    if (job->next == job->count) {
        das_job **link = &pool->jobs;
        while (*link != job)
            link = &(*link)->following;
        *link = job->following;
    }
    pthread_mutex_unlock(&pool->mutex);
    run_task(job->task, job->argument, index);
    pthread_mutex_lock(&pool->mutex);
    if (++job->finished == job->count)
        pthread_cond_signal(&job->done);
}

static void *worker(void *argument)
{
    struct das_pool *pool = argument;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->stopping) {
        if (pool->jobs != NULL)
            take_one(pool, pool->jobs);
        else
            pthread_cond_wait(&pool->work, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static struct das_pool *pool_create(das_device *device)
{
    int64_t wanted = device->host.thread_count - 1;
    struct das_pool *pool = das_device_allocate(device, sizeof *pool + (size_t)wanted * sizeof pool->threads[0]);
    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->process = getpid();
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);

    /* The host's signals are for the host's threads. */
    sigset_t all, saved;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    while (pool->thread_count < wanted &&
           pthread_create(&pool->threads[pool->thread_count], NULL, worker, pool) == 0)
        pool->thread_count++;
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (pool->thread_count < wanted)
        das_log(device, DAS_LOG_WARNING, "started %lld of %lld threads", (long long)pool->thread_count, (long long)wanted);
    return pool;
}

/* The device's pool, started if need be. After fork() the parent's threads are not here, nor is its mutex to be
 * trusted: the child makes a pool of its own and leaves the inherited memory alone. */
static struct das_pool *pool_get(das_device *device)
{
    pthread_mutex_lock(&device->mutex);
    if (device->pool == NULL || device->pool->process != getpid())
        device->pool = pool_create(device);
    struct das_pool *pool = device->pool;
    pthread_mutex_unlock(&device->mutex);
    return pool;
}

void das_pool_destroy(das_device *device)
{
    struct das_pool *pool = device->pool;
    if (pool == NULL || pool->process != getpid())
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int64_t i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    das_device_release(device, pool);
    device->pool = NULL;
}

typedef struct das_guarded {
    das_task_function *task;
    void *argument;
} das_guarded;

static void run_guarded(void *argument, int64_t index)
{
    const das_guarded *guarded = argument;
    run_task(guarded->task, guarded->argument, index);
}

das_status das_parallel_start(das_device *device, das_error *error)
{
    if (device->host.run == NULL && device->host.thread_count > 1 && pool_get(device) == NULL)
        return das_fail_memory(error, "the threads", sizeof(struct das_pool));
    return DAS_OK;
}

void das_parallel(das_device *device, das_task_function *task, void *argument, int64_t count)
{
    if (device->host.run != NULL && count > 1) {
        das_guarded guarded = {task, argument};
        device->host.run(device->host.run_context, run_guarded, &guarded, count);
        return;
    }
    struct das_pool *pool = count > 1 && device->host.thread_count > 1 ? pool_get(device) : NULL;
    if (pool == NULL) {
        for (int64_t i = 0; i < count; i++)
            run_task(task, argument, i);
        return;
    }

    das_job job = {.task = task, .argument = argument, .count = count};
    pthread_cond_init(&job.done, NULL);
    pthread_mutex_lock(&pool->mutex);
    das_job **link = &pool->jobs;
    while (*link != NULL)
        link = &(*link)->following;
    *link = &job;
    pthread_cond_broadcast(&pool->work);
    while (job.next < job.count)
        take_one(pool, &job);
    while (job.finished < job.count)
        pthread_cond_wait(&job.done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&job.done);
}

int64_t das_parallel_width(das_device *device)
{
    return device->host.thread_count;
}

static int64_t affinity_count(void)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (set == NULL)
            break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? online : 1;
}

/* The first line of a small file; false if there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, line, size - 1);
    close(file);
    if (length <= 0)
        return false;
    line[length] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return true;
}

/* CPUs that the quotas of a group and of those around it allow, the smallest on the way up; 0 if unlimited. `hierarchy` is
 * where its tree of groups lies; v1 has quota and period in two files, v2 in one. */
static int64_t quota_upwards(const char *hierarchy, const char *group, bool v1)
{
    int64_t least = 0;
    char path[4200];
    snprintf(path, sizeof path, "%s", strcmp(group, "/") == 0 ? "" : group);
    for (;;) {
        char file[8600], line[128];
        long long quota = 0, period = 0;
        bool known;
        snprintf(file, sizeof file, "%s%s/%s", hierarchy, path, v1 ? "cpu.cfs_quota_us" : "cpu.max");
        known = read_line(file, line, sizeof line) && sscanf(line, "%lld %lld", &quota, &period) >= (v1 ? 1 : 2);
        if (known && v1) {
            snprintf(file, sizeof file, "%s%s/cpu.cfs_period_us", hierarchy, path);
            known = read_line(file, line, sizeof line) && sscanf(line, "%lld", &period) == 1;
        }
        if (known && quota > 0 && period > 0) {
            int64_t cpus = (quota - 1) / period + 1;
            if (least == 0 || cpus < least)
                least = cpus;
        }
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

int64_t das_quota_threads(const char *groups, const char *root)
{
    FILE *file = fopen(groups, "re");
    if (file == NULL)
        return 0;
    int64_t least = 0;
    char line[4200], hierarchy[4300];
    /* number:controllers:group, without controllers for v2. */
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        controllers++;
        const bool v1 = controllers[0] != '\0';
        const char *item = controllers;
        while (v1 && item != NULL && (strncmp(item, "cpu", 3) != 0 || (item[3] != ',' && item[3] != '\0'))) {
            item = strchr(item, ',');
            item = item != NULL ? item + 1 : NULL;
        }
        if (item == NULL)
            continue;
        snprintf(hierarchy, sizeof hierarchy, v1 ? "%s/cpu" : "%s", root);
        const int64_t cpus = quota_upwards(hierarchy, group, v1);
        if (cpus > 0 && (least == 0 || cpus < least))
            least = cpus;
    }
    fclose(file);
    return least;
}

int64_t das_available_threads(void)
{
    int64_t count = affinity_count();
    const int64_t quota = das_quota_threads("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && quota < count)
        count = quota;
    return count > 1024 ? 1024 : count;
}
