// The ping-pong over a connected socket: one system call to send, one to receive, at either end.
#ifndef SOCKET_H
#define SOCKET_H

#include "bare.h"

// A whole message, or exit. Busy: recv that returns at once, again and again. A stream may deliver
// it in pieces; on loopback it does not.
static inline void receive(int fd, char *message, size_t size, int busy) {
    size_t filled = 0;
    while (filled < size) {
        ssize_t got = recv(fd, message + filled, size - filled, busy ? MSG_DONTWAIT : 0);
        if (got > 0) {
            filled += (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            die("recv");
        }
    }
}

static inline void transmit(int fd, const char *message, size_t size) {
    if (send(fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) die("send");
}

static inline void serve(int fd, const struct args *a) {
    static char message[MOST_SIZE];
    int busy = is_busy(a);
    for (size_t i = 0; i < a->warmup + a->count; i++) {
        receive(fd, message, a->size, busy);
        transmit(fd, message, a->size);
    }
}

static inline void measure(int fd, const struct args *a) {
    static char message[MOST_SIZE];
    uint64_t *rtt = samples(a->warmup + a->count);
    int busy = is_busy(a);
    struct baseline since = baseline();
    for (uint64_t i = 0; i < a->warmup + a->count; i++) {
        memcpy(message, &i, sizeof i);
        uint64_t sent = now();
        transmit(fd, message, a->size);
        receive(fd, message, a->size, busy);
        rtt[i] = now() - sent;
        if (memcmp(message, &i, sizeof i) != 0) {
            fprintf(stderr, "message %lu came back as another\n", i);
            exit(1);
        }
    }
    report_half_rtt(a, rtt, since);
}

// Plays both ends of a pair of sockets that are connected already.
static inline int ping_pong(const struct args *a, int client, int server) {
    pid_t child = split(a);
    if (child == 0) {
        serve(server, a);
        return 0;
    }
    measure(client, a);
    join(child);
    return 0;
}

#endif
