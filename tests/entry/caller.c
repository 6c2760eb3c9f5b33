/* tests/entry/caller.c: a caller in plain C, compiled by test_c_program.py; its threads are none of Python's. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pyop/entry.h>
#include <pyop/version.h>

struct work {
    const pyop_plan* plan;
    double from;
    long calls, failed, wrong;
    double sum;
    double seconds;
};

/* What this thread has had of a processor. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void* run(void* given) {
    struct work* w = given;
    const double begin = now();
    for (long i = 0; i < w->calls; ++i) {
        const double x = w->from + (double)i;
        double y = -1.0;
        const void* in[1];
        void* out[1];
        in[0] = &x;
        out[0] = &y;
        if (pyop_plan_call(w->plan, in, out) != PYOP_OK) {
            w->failed += 1;
            if (y != -1.0 || strlen(pyop_message(w->plan)) == 0) w->wrong += 1;
        } else {
            w->sum += y;
            if (y != 2.0 * x + 1.0) w->wrong += 1;
        }
    }
    w->seconds = now() - begin;
    return NULL;
}

/* 2 x + 1 by a plan on so many threads; how many calls failed, or -1 if one was wrong. `nanoseconds` a call, of the
   slowest thread; may be null. */
long run_threads(const pyop_plan* plan, int n, long calls, double* nanoseconds) {
    pthread_t threads[64];
    struct work work[64];
    long failed = 0, wrong = 0;
    double longest = 0.0;
    for (int k = 0; k < n; ++k) {
        memset(&work[k], 0, sizeof work[k]);
        work[k].plan = plan;
        work[k].from = 1000.0 * k;
        work[k].calls = calls;
        if (pthread_create(&threads[k], NULL, run, &work[k]) != 0) return -2;
    }
    for (int k = 0; k < n; ++k) {
        pthread_join(threads[k], NULL);
        failed += work[k].failed;
        wrong += work[k].wrong;
        longest = fmax(longest, work[k].seconds);
    }
    if (nanoseconds) *nanoseconds = 1e9 * longest / (double)calls;
    return wrong ? -1 : failed;
}

static void* run_for_ever(void* given) {
    struct work* w = given;
    w->calls = 64;
    for (;;) run(w);
    return NULL;
}

/* Threads that call until the process ends. */
int start_threads(const pyop_plan* plan, int n) {
    for (int k = 0; k < n; ++k) {
        pthread_t thread;
        struct work* w = calloc(1, sizeof *w);
        if (!w) return -1;
        w->plan = plan;
        if (pthread_create(&thread, NULL, run_for_ever, w) != 0) return -1;
    }
    return 0;
}

/* What a header of this version says of a plan. */
int describes(const pyop_plan* plan) {
    return plan->table->version >= PYOP_ENTRY_VERSION && plan->table->size >= sizeof(pyop_table) &&
           pyop_n_inputs(plan) == 1 && pyop_n_outputs(plan) == 1 && pyop_input(plan, 0)->bytes == 8 &&
           strcmp(pyop_output(plan, 0)->dtype, "float64") == 0 && pyop_input(plan, 1) == NULL;
}

static const pyop_plan* last;

/* At the very end, behind all of Python: a status, or a result, and no crash. */
static void call_last(void) {
    const double x = 1.0;
    double y = 0.0;
    const void* in[1];
    void* out[1];
    in[0] = &x;
    out[0] = &y;
    const int status = pyop_plan_call(last, in, out);
    if (status == PYOP_OK ? y != 3.0 : status != PYOP_SHUT_DOWN || y != 0.0) _Exit(9);
    _Exit(status == PYOP_OK ? 10 : 11);
}

int call_at_exit(const pyop_plan* plan) {
    last = plan;
    return atexit(call_last);
}
