// Bare cache-line ping-pong: one line each way, a sequence word and 8 B of payload in it. What no
// transport between two processes on two cores can undercut.
#include "bare.h"

// 256 B apart, so that no prefetcher takes one line along with the other.
struct line {
    _Alignas(256) _Atomic uint64_t sequence;
    uint64_t payload;
};

static inline void put(struct line *line, uint64_t sequence, uint64_t payload) {
    line->payload = payload;
    atomic_store_explicit(&line->sequence, sequence, memory_order_release);
}

static inline uint64_t take(struct line *line, uint64_t sequence) {
    while (atomic_load_explicit(&line->sequence, memory_order_acquire) != sequence) {
    }
    return line->payload;
}

int main(int argc, char **argv) {
    struct args a = parse(argc, argv);
    if (!is_busy(&a) || a.size != 8) {
        fprintf(stderr, "%s: busy and 8 B only\n", argv[0]);
        return 2;
    }
    struct line *there = shared(2 * sizeof *there), *back = there + 1;
    pid_t child = split(&a);
    size_t all = a.warmup + a.count;
    if (child == 0) {
        for (uint64_t i = 1; i <= all; i++) put(back, i, take(there, i));
        return 0;
    }
    uint64_t *rtt = samples(all);
    struct baseline since = baseline();
    for (uint64_t i = 1; i <= all; i++) {
        uint64_t payload = i * 0x9e3779b97f4a7c15;
        uint64_t sent = now();
        put(there, i, payload);
        uint64_t got = take(back, i);
        rtt[i - 1] = now() - sent;
        if (got != payload) {
            fprintf(stderr, "message %lu came back as another\n", i);
            return 1;
        }
    }
    report_half_rtt(&a, rtt, since);
    join(child);
    return 0;
}
