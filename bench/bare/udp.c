// Bare UDP ping-pong over loopback, both sockets connected. It ends by SIGALRM where a datagram is
// lost: loopback drops none while one is on the way.
#include "socket.h"

#include <arpa/inet.h>

static int bound(struct sockaddr_in *at) {
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof *at;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, (struct sockaddr *)at, sizeof *at) != 0) die("bind");
    if (getsockname(fd, (struct sockaddr *)at, &length) != 0) die("getsockname");
    return fd;
}

int main(int argc, char **argv) {
    struct args a = parse(argc, argv);
    struct sockaddr_in at_client, at_server;
    int client = bound(&at_client), server = bound(&at_server);
    if (connect(client, (struct sockaddr *)&at_server, sizeof at_server) != 0 ||
        connect(server, (struct sockaddr *)&at_client, sizeof at_client) != 0)
        die("connect");
    return ping_pong(&a, client, server);
}
