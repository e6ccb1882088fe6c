// An MPI library that does to rank 1 what WIREGAUGE_TEST_RANK_1 says, and is else the one that it
// is linked with: `die` or `wait` in MPI_Init_thread, `abort` at the 2000th send.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int PMPI_Init_thread(int *argc, char ***argv, int wanted, int *granted);
int PMPI_Isend(const void *from, int count, void *datatype, int to, int tag, void *comm,
               void *request);
int PMPI_Abort(void *comm, int code);

static int does(const char *what) {
    const char *told = getenv("WIREGAUGE_TEST_RANK_1");
    const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *hydra = getenv("PMI_RANK");
    const char *rank = open_mpi ? open_mpi : hydra;
    return told && rank && !strcmp(told, what) && !strcmp(rank, "1");
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *granted) {
    if (does("die")) kill(getpid(), SIGKILL);
    while (does("wait")) pause();
    return PMPI_Init_thread(argc, argv, wanted, granted);
}

int MPI_Isend(const void *from, int count, void *datatype, int to, int tag, void *comm,
              void *request) {
    static int sends;
    if (++sends == 2000 && does("abort")) PMPI_Abort(comm, 7);
    while (sends >= 2000 && does("stay")) pause();
    return PMPI_Isend(from, count, datatype, to, tag, comm, request);
}
