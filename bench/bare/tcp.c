// Bare TCP ping-pong over loopback.
#include "socket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>

int main(int argc, char **argv) {
    struct args a = parse(argc, argv);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0) die("bind");
    if (listen(listener, 1) != 0) die("listen");
    if (getsockname(listener, (struct sockaddr *)&at, &length) != 0) die("getsockname");
    if (connect(client, (struct sockaddr *)&at, sizeof at) != 0) die("connect");
    int server = accept(listener, 0, 0);
    if (server < 0) die("accept");
    int on = 1;
    if (setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        die("TCP_NODELAY");
    return ping_pong(&a, client, server);
}
