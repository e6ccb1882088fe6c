// What the bare loops share: pinning, the clock, the samples, one JSON line at the end.
//
// A bare loop is the least code that moves the same messages by the same means as wiregauge does.
// What wiregauge takes beyond it is the price of the instrument.
#ifndef BARE_H
#define BARE_H

#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

// A loop that hangs is ended by SIGALRM after this long; an ordinary one takes seconds.
enum { MOST_SECONDS = 60 };
// Shorter runs wait for it: the two clock readings at each end of the baseline err by less than
// 100 ns, so that the frequency errs by less than 2 ppm.
enum { BASELINE_NS = 100000000 };
enum { LEAST_SIZE = 8, MOST_SIZE = 65000 };

struct args {
    const char *wait;
    size_t size;
    size_t count;   // messages after the warm-up
    size_t warmup;  // a tenth of them, sent before
    int client_cpu;
    int server_cpu;
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static inline struct args parse(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: %s busy|block SIZE COUNT CLIENT_CPU SERVER_CPU\n", argv[0]);
        exit(2);
    }
    struct args a = {argv[1], strtoul(argv[2], 0, 10), strtoul(argv[3], 0, 10), 0,
                     atoi(argv[4]), atoi(argv[5])};
    int known = !strcmp(a.wait, "busy") || !strcmp(a.wait, "block");
    if (!known || a.size < LEAST_SIZE || a.size > MOST_SIZE || a.count == 0) {
        fprintf(stderr, "%s: wait is busy or block, size 8 to 65000, count above 0\n", argv[0]);
        exit(2);
    }
    a.warmup = a.count / 10;
    return a;
}

static inline int is_busy(const struct args *a) { return !strcmp(a->wait, "busy"); }

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

// Two processes, each on its CPU: 0 in the child (the server), its pid in the parent (the client).
static inline pid_t split(const struct args *a) {
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(MOST_SECONDS);
    pin(child == 0 ? a->server_cpu : a->client_cpu);
    return child;
}

static inline void join(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "the server failed\n");
        exit(1);
    }
}

// Everything before it is done when it reads; the message that follows is a store, which no one
// sees before the reading has retired. wiregauge's clock reads likewise.
static inline uint64_t now(void) {
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

static uint64_t raw_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct baseline {
    uint64_t ticks, ns;
};

static struct baseline baseline(void) { return (struct baseline){now(), raw_ns()}; }

static double ns_per_tick(struct baseline since) {
    while (raw_ns() - since.ns < BASELINE_NS) {
    }
    struct baseline end = baseline();
    return (double)(end.ns - since.ns) / (double)(end.ticks - since.ticks);
}

// Memory for the samples, touched before the first message.
static inline uint64_t *samples(size_t n) {
    uint64_t *all = mmap(0, n * sizeof *all, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (all == MAP_FAILED) die("mmap");
    memset(all, 0, n * sizeof *all);
    return all;
}

static inline void *shared(size_t bytes) {
    void *all = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
                     -1, 0);
    if (all == MAP_FAILED) die("mmap");
    return all;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Half round trips from round trips in ticks: nearest rank, the warm-up cut.
static inline void report_half_rtt(const struct args *a, uint64_t *rtt, struct baseline since) {
    double half = ns_per_tick(since) / 2;
    uint64_t *kept = rtt + a->warmup;
    qsort(kept, a->count, sizeof *kept, by_value);
    size_t p50 = (a->count + 1) / 2 - 1, p99 = (a->count * 99 + 99) / 100 - 1;
    printf("{\"p50_ns\": %.3f, \"p99_ns\": %.3f, \"count\": %zu}\n", (double)kept[p50] * half,
           (double)kept[p99] * half, a->count);
}

#endif
