/* Preloaded, it gives a program a second thread, which does nothing.
 *
 * glibc's write() and the kernel's look-up of a file take longer in a process of several threads,
 * as wiregauge is. Soft-RoCE rings its doorbell by write(), an adapter by a store. */
#include <pthread.h>
#include <unistd.h>

static void *idle(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, idle, NULL);
}
