// Bare single-producer single-consumer ring of cells, each with a sequence word and 8 B of payload.
// A cell is a cache line, or with -DCELL=16 a quarter of one: one line for a message or for four of
// them one way, and one line a quarter of a lap the other way (the consumer's cumulative index).
// Prints the rate by the consumer's clock.
#include "bare.h"

#ifndef CELL
#define CELL 64
#endif

enum { CELLS = 256 };

struct cell {
    _Alignas(CELL) _Atomic uint64_t sequence;
    uint64_t payload;
};

struct ring {
    struct cell cells[CELLS];
    _Alignas(256) _Atomic uint64_t taken;
};

static void produce(struct ring *ring, uint64_t all) {
    uint64_t taken = 0;
    for (uint64_t i = 0; i < all; i++) {
        while (i - taken >= CELLS) taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
        struct cell *cell = &ring->cells[i % CELLS];
        cell->payload = i ^ 0x5555555555555555;
        atomic_store_explicit(&cell->sequence, i + 1, memory_order_release);
    }
}

static void consume(struct ring *ring, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        struct cell *cell = &ring->cells[i % CELLS];
        while (atomic_load_explicit(&cell->sequence, memory_order_acquire) != i + 1) {
        }
        if (cell->payload != (i ^ 0x5555555555555555)) {
            fprintf(stderr, "message %lu is another\n", i);
            exit(1);
        }
        if ((i + 1) % (CELLS / 4) == 0)
            atomic_store_explicit(&ring->taken, i + 1, memory_order_release);
    }
}

int main(int argc, char **argv) {
    struct args a = parse(argc, argv);
    if (!is_busy(&a) || a.size != 8) {
        fprintf(stderr, "%s: busy and 8 B only\n", argv[0]);
        return 2;
    }
    struct ring *ring = shared(sizeof *ring);
    pid_t child = split(&a);
    if (child == 0) {
        struct baseline since = baseline();
        consume(ring, 0, a.warmup);
        uint64_t start = now();
        consume(ring, a.warmup, a.warmup + a.count);
        double seconds = (double)(now() - start) * ns_per_tick(since) / 1e9;
        printf("{\"msg_per_s\": %.1f, \"count\": %zu}\n", (double)a.count / seconds, a.count);
        return 0;
    }
    produce(ring, a.warmup + a.count);
    join(child);
    return 0;
}
