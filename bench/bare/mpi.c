// Bare MPI loops between two ranks: a ping-pong of MPI_Send and MPI_Recv, a stream of MPI_Isend in
// windows that the receiver answers, and an allreduce that both enter at an agreed instant. Built
// once by each MPI's own compiler wrapper.
#include "bare.h"

#include <mpi.h>

enum { WINDOW = 64, LONGEST = 8 << 20 };

static uint64_t *rtt;

static void pingpong(const struct args *a, int rank, char *message) {
    size_t all = a->warmup + a->count;
    struct baseline since = baseline();
    for (size_t i = 0; i < all; i++) {
        if (rank == 0) {
            uint64_t sent = now();
            MPI_Send(message, (int)a->size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(message, (int)a->size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            rtt[i] = now() - sent;
        } else {
            MPI_Recv(message, (int)a->size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(message, (int)a->size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) report_half_rtt(a, rtt, since);
}

// Each message of a window has memory of its own at both ends, as wiregauge's have.
static void stream(const struct args *a, int rank, char *memory) {
    MPI_Request requests[WINDOW];
    size_t windows = (a->count + WINDOW - 1) / WINDOW, before = a->warmup / WINDOW + 1;
    uint64_t begin = 0;
    char answer = 0;
    for (size_t w = 0; w < windows + before; w++) {
        if (w == before) begin = raw_ns();
        for (int i = 0; i < WINDOW; i++) {
            char *at = memory + (size_t)i * a->size;
            if (rank == 0)
                MPI_Isend(at, (int)a->size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, requests + i);
            else
                MPI_Irecv(at, (int)a->size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, requests + i);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(&answer, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(&answer, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    double seconds = (double)(raw_ns() - begin) / 1e9;
    double messages = (double)(windows * WINDOW);
    if (rank == 0)
        printf("{\"msg_per_s\": %.3f, \"bytes_per_s\": %.3f, \"count\": %.0f}\n",
               messages / seconds, messages * (double)a->size / seconds, messages);
}

// From the first entry to the last exit: both are on one machine, whose counter is the common time.
// They agree on the instant as wiregauge's ranks do, and time what they take to agree.
static void allreduce(const struct args *a, int rank, double *from) {
    enum { LEAST_LEAD = 2000 };
    size_t all = a->warmup + a->count;
    int numbers = (int)(a->size / sizeof *from);
    double *to = from + numbers;
    uint64_t *entry = samples(all), *exit = samples(all);
    uint64_t *first = samples(all), *last = samples(all);
    int64_t lead = LEAST_LEAD;
    struct baseline since = baseline();
    for (size_t i = 0; i < all; i++) {
        int64_t own[2] = {(int64_t)now(), lead}, agreed[2];
        MPI_Allreduce(own, agreed, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        int64_t took = (int64_t)now() - agreed[0];
        lead = took > lead ? lead + lead / 4 : took < lead / 2 ? lead / 2 : lead;
        int64_t ahead = 2 * agreed[1] > LEAST_LEAD ? 2 * agreed[1] : LEAST_LEAD;
        uint64_t begin = (uint64_t)(agreed[0] + ahead);
        while (now() < begin) {
        }
        entry[i] = now();
        MPI_Allreduce(from, to, numbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        exit[i] = now();
    }
    MPI_Reduce(entry, first, (int)all, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(exit, last, (int)all, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < all; i++) rtt[i] = 2 * (last[i] - first[i]);
    if (rank == 0) report_half_rtt(a, rtt, since);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: %s pingpong|stream|allreduce SIZE COUNT CLIENT_CPU SERVER_CPU\n",
                argv[0]);
        return 2;
    }
    struct args a = {argv[1], strtoul(argv[2], 0, 10), strtoul(argv[3], 0, 10), 0,
                     atoi(argv[4]), atoi(argv[5])};
    a.warmup = a.count / 10;
    if (a.size == 0 || a.size > LONGEST || a.count == 0) {
        fprintf(stderr, "%s: size 1 to %d, count above 0\n", argv[0], LONGEST);
        return 2;
    }
    alarm(MOST_SECONDS);
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pin(rank == 0 ? a.client_cpu : a.server_cpu);
    size_t bytes = (size_t)WINDOW * a.size;
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    memset(memory, 1, bytes);
    rtt = samples(a.warmup + a.count);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(a.wait, "pingpong"))
        pingpong(&a, rank, memory);
    else if (!strcmp(a.wait, "allreduce"))
        allreduce(&a, rank, (double *)memory);
    else
        stream(&a, rank, memory);
    MPI_Finalize();
    return 0;
}
