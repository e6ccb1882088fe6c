// Bare ping-pong over a pair of unix stream sockets; built with -DDATAGRAM, over datagram sockets.
#include "socket.h"

#ifdef DATAGRAM
enum { KIND = SOCK_DGRAM };
#else
enum { KIND = SOCK_STREAM };
#endif

int main(int argc, char **argv) {
    struct args a = parse(argc, argv);
    int ends[2];
    if (socketpair(AF_UNIX, KIND, 0, ends) != 0) die("socketpair");
    return ping_pong(&a, ends[0], ends[1]);
}
