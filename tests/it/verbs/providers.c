/* Queue pairs that Soft-RoCE lacks, made of those that it has: loaded before the program, whose
 * look-ups of functions it answers. FAKE_SERVICE says which are there.
 *
 * xrc: of reliable connections, one for each direction, with one shared receive queue.
 * dc, srd: of datagrams; the header that these put before a payload goes elsewhere.
 *
 * Each function checks its arguments as the kernel's drivers mlx5_ib and efa do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/efadv.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef ibv_query_port
#undef ibv_reg_mr

enum kind { PLAIN, XRC_SENDS, XRC_RECEIVES, INITIATOR, TARGET, DATAGRAM };
enum { MOST = 64, HEADER = 40, QUEUE = 77, KEY = 0x1234, INLINE = 32 };

static struct known { struct ibv_qp *qp; enum kind kind; uint32_t number; } all[MOST];
static int count, rnr_retry;
static struct ibv_pd *domain;
static struct ibv_mr *header;
static struct ibv_cq *receives_into;
static struct ibv_srq *shared;
static struct ibv_xrcd xrcd;
static uint64_t access_key;
static struct ibv_context_ops ops;
static int (*extended_create)(void);

static void *real(const char *name) {
    static void *library;
    if (!library) library = dlopen("libibverbs.so.1", RTLD_NOW);
    static void *(*look_up)(void *, const char *);
    if (!look_up) look_up = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return look_up(library, name);
}
#define REAL(name) ((__typeof__(&name))real(#name))

static int is(const char *service) {
    const char *asked = getenv("FAKE_SERVICE");
    return asked && !strcmp(asked, service);
}
static void *refuse(int error) { errno = error; return NULL; }
static struct known *of(struct ibv_qp *qp) {
    static struct known plain;
    for (int i = 0; i < count; i++) if (all[i].qp == qp) return &all[i];
    return &plain;
}
static struct ibv_qp *know(struct ibv_qp *qp, enum kind kind) {
    if (!qp || count == MOST) return qp;
    all[count++] = (struct known){ qp, kind, qp->qp_num };
    /* A target has no number before it is ready to receive. */
    if (kind == TARGET) qp->qp_num = 0;
    return qp;
}

/* The calls of the data path. */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    for (struct ibv_send_wr *one = wr; one; one = one->next) {
        *bad = one;
        switch (of(qp)->kind) {
        case XRC_SENDS: if (one->qp_type.xrc.remote_srqn != QUEUE) return EINVAL; break;
        case INITIATOR: return EOPNOTSUPP;
        case DATAGRAM:
            if (!(one->send_flags & IBV_SEND_SIGNALED)) return EINVAL;
            if (one->opcode != IBV_WR_SEND && one->opcode != IBV_WR_SEND_WITH_IMM) return EINVAL;
            break;
        default: break;
        }
    }
    return ops.post_send(qp, wr, bad);
}
static int with_header(struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad) {
    for (; wr; wr = wr->next) {
        struct ibv_sge pieces[2] = {
            { (uintptr_t)header->addr, HEADER, header->lkey }, wr->sg_list[0] };
        struct ibv_recv_wr one = { wr->wr_id, NULL, pieces, 2 };
        int error = srq ? ops.post_srq_recv(srq, &one, bad) : ops.post_recv(qp, &one, bad);
        *bad = wr;
        if (error) return error;
    }
    return 0;
}
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return with_header(qp, NULL, wr, bad);
}
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return with_header(NULL, srq, wr, bad);
}
static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc) {
    int found = ops.poll_cq(cq, most, wc);
    for (int i = 0; i < found; i++) if (wc[i].opcode & IBV_WC_RECV) wc[i].byte_len -= HEADER;
    /* What completes at once completes in the other order. */
    for (int i = 0; is("srd") && i < found / 2; i++)
        if (!(wc[i].opcode & IBV_WC_RECV)) {
            struct ibv_wc last = wc[found - 1 - i];
            wc[found - 1 - i] = wc[i];
            wc[i] = last;
        }
    return found;
}

/* XRC. */
static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *of) {
    if (of->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)) return refuse(EINVAL);
    xrcd.context = context;
    return &xrcd;
}
static int close_xrcd(struct ibv_xrcd *of) { return of == &xrcd ? 0 : EINVAL; }
static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *of) {
    if (of->srq_type != IBV_SRQT_XRC || of->xrcd != &xrcd || !of->cq) return refuse(EINVAL);
    struct ibv_srq_init_attr plain = { .attr = of->attr };
    receives_into = of->cq;
    return shared = REAL(ibv_create_srq)(of->pd, &plain);
}
static int get_srq_num(struct ibv_srq *srq, uint32_t *number) { *number = QUEUE; return 0; }
static void set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t number) {
    if (number != QUEUE) abort();
}
static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *of) {
    struct ibv_qp *(*create)(struct ibv_context *, struct ibv_qp_init_attr_ex *) =
        (void *)extended_create;
    if (of->qp_type == IBV_QPT_XRC_RECV) {
        if (of->comp_mask != IBV_QP_INIT_ATTR_XRCD || of->xrcd != &xrcd) return refuse(EINVAL);
        struct ibv_qp_init_attr rc = { .qp_type = IBV_QPT_RC, .send_cq = receives_into,
            .recv_cq = receives_into, .srq = shared, .cap = { 1, 0, 1, 0, 0 } };
        return know(REAL(ibv_create_qp)(domain, &rc), XRC_RECEIVES);
    }
    if (of->qp_type != IBV_QPT_XRC_SEND) return create(context, of);
    if (of->srq || of->cap.max_recv_wr) return refuse(EINVAL);
    struct ibv_qp_init_attr_ex rc = *of;
    rc.qp_type = IBV_QPT_RC;
    struct ibv_qp *qp = create(context, &rc);
    of->cap = rc.cap;
    if (qp) REAL(ibv_qp_to_qp_ex)(qp)->wr_set_xrc_srqn = set_xrc_srqn;
    return know(qp, XRC_SENDS);
}
static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *of) {
    if (of->qp_type != IBV_QPT_XRC_SEND) return REAL(ibv_create_qp)(pd, of);
    if (of->srq || of->cap.max_recv_wr) return refuse(EINVAL);
    of->qp_type = IBV_QPT_RC;
    struct ibv_qp *qp = REAL(ibv_create_qp)(pd, of);
    of->qp_type = IBV_QPT_XRC_SEND;
    return know(qp, XRC_SENDS);
}

/* DC. */
static bool is_supported(struct ibv_device *device) { return is("dc"); }
static struct addressed { struct mlx5dv_qp_ex own; struct ibv_qp_ex *qp; } addressed[MOST];
static void set_dc_addr(struct mlx5dv_qp_ex *own, struct ibv_ah *way, uint32_t target,
                        uint64_t key) {
    struct ibv_qp_ex *qp = ((struct addressed *)own)->qp;
    if (key != access_key || !target) abort();
    qp->wr_set_ud_addr(qp, way, target, KEY);
}
static struct mlx5dv_qp_ex *extend(struct ibv_qp_ex *qp) {
    struct addressed *one = &addressed[of((struct ibv_qp *)qp) - all];
    one->own.wr_set_dc_addr = set_dc_addr;
    one->qp = qp;
    return &one->own;
}
static struct ibv_qp *create_dc(struct ibv_context *context, struct ibv_qp_init_attr_ex *of,
                                struct mlx5dv_qp_init_attr *own) {
    struct ibv_qp *(*create)(struct ibv_context *, struct ibv_qp_init_attr_ex *) =
        (void *)extended_create;
    int is_target = own->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT;
    if (of->qp_type != IBV_QPT_DRIVER || !(own->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC))
        return refuse(EINVAL);
    if (own->create_flags != MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE) return refuse(EINVAL);
    struct ibv_qp_init_attr_ex ud = *of;
    ud.qp_type = IBV_QPT_UD;
    if (is_target) {
        if (of->comp_mask != IBV_QP_INIT_ATTR_PD || !of->srq) return refuse(EINVAL);
        access_key = own->dc_init_attr.dct_access_key;
        ud.cap.max_send_wr = ud.cap.max_send_sge = 1;
    } else {
        if (!(of->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) return refuse(EINVAL);
        ud.send_ops_flags &= IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    }
    struct ibv_qp *qp = is_target
        ? REAL(ibv_create_qp)(domain, (struct ibv_qp_init_attr *)&ud) : create(context, &ud);
    of->cap = ud.cap;
    return know(qp, is_target ? TARGET : INITIATOR);
}
static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *of) {
    if (is("dc")) of->attr.max_sge = 2;
    return REAL(ibv_create_srq)(pd, of);
}

/* SRD. */
static int query_efa(struct ibv_context *context, struct efadv_device_attr *of, uint32_t size) {
    if (size < sizeof *of) return EINVAL;
    *of = (struct efadv_device_attr){ .inline_buf_size = INLINE, .max_rdma_size = 1 << 20,
        .device_caps = EFADV_DEVICE_ATTR_CAPS_RNR_RETRY | EFADV_DEVICE_ATTR_CAPS_RDMA_READ };
    return 0;
}
static struct ibv_qp *create_srd(struct ibv_pd *pd, struct ibv_qp_init_attr *of, uint32_t kind) {
    if (of->qp_type != IBV_QPT_DRIVER || kind || of->srq) return refuse(EINVAL);
    if (of->cap.max_inline_data > INLINE) return refuse(EINVAL);
    of->qp_type = IBV_QPT_UD;
    of->cap.max_recv_sge = 2;
    struct ibv_qp *qp = REAL(ibv_create_qp)(pd, of);
    of->qp_type = IBV_QPT_DRIVER;
    return know(qp, DATAGRAM);
}
static struct ibv_qp *create_srd_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *of,
                                    struct efadv_qp_init_attr *own, uint32_t size) {
    struct ibv_qp *(*create)(struct ibv_context *, struct ibv_qp_init_attr_ex *) =
        (void *)extended_create;
    if (of->qp_type != IBV_QPT_DRIVER || own->comp_mask || size != sizeof *own || of->srq)
        return refuse(EINVAL);
    if (of->cap.max_inline_data > INLINE) return refuse(EINVAL);
    struct ibv_qp_init_attr_ex ud = *of;
    ud.qp_type = IBV_QPT_UD;
    ud.cap.max_recv_sge = 2;
    struct ibv_qp *qp = create(context, &ud);
    of->cap = ud.cap;
    return know(qp, DATAGRAM);
}

/* States: the masks that the kernel takes of each kind, and what is behind it. */
static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *asked, int mask) {
    const int first = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    const int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int answers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const int retries = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    const int last = IBV_QP_STATE | IBV_QP_SQ_PSN;
    struct known *known = of(qp);
    struct ibv_qp_attr attr = *asked;
    int state = attr.qp_state == IBV_QPS_INIT ? 0 : attr.qp_state == IBV_QPS_RTR ? 1 : 2;
    int right, more = 0;
    switch (known->kind) {
    case XRC_SENDS:
        right = (int[]){ first | IBV_QP_ACCESS_FLAGS, IBV_QP_STATE | path,
                         last | IBV_QP_TIMEOUT | retries }[state];
        if (state == 1) more = answers;
        break;
    case XRC_RECEIVES:
        right = (int[]){ first | IBV_QP_ACCESS_FLAGS, IBV_QP_STATE | path | answers,
                         last | IBV_QP_TIMEOUT }[state];
        if (state == 2) more = retries;
        break;
    case INITIATOR:
        right = (int[]){ first, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV,
                         last | IBV_QP_TIMEOUT | retries }[state];
        break;
    case TARGET:
        right = (int[]){ first | IBV_QP_ACCESS_FLAGS, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                         IBV_QP_MIN_RNR_TIMER, -1 }[state];
        break;
    case DATAGRAM:
        right = (int[]){ first | IBV_QP_QKEY, IBV_QP_STATE, last | IBV_QP_RNR_RETRY }[state];
        break;
    default: return REAL(ibv_modify_qp)(qp, &attr, mask);
    }
    if (mask != right) return EINVAL;
    if (known->kind == INITIATOR || known->kind == TARGET) attr.qkey = KEY;
    if (known->kind == DATAGRAM && state == 2) rnr_retry = attr.rnr_retry;
    if (known->kind >= INITIATOR)
        mask = (int[]){ first | IBV_QP_QKEY, IBV_QP_STATE, last }[state], more = 0;
    int error = REAL(ibv_modify_qp)(qp, &attr, mask | more);
    if (!error && known->kind == TARGET && state == 1) qp->qp_num = known->number;
    return error;
}
static int query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                    struct ibv_qp_init_attr *init) {
    const int of_efa = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_RNR_RETRY;
    int is_efa = of(qp)->kind == DATAGRAM;
    if (is_efa && mask & ~of_efa) return EOPNOTSUPP;
    int error = REAL(ibv_query_qp)(qp, attr, mask, init);
    if (is_efa) attr->rnr_retry = rnr_retry;
    return error;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
    int error = REAL(ibv_query_device)(context, attr);
    if (is("xrc")) attr->device_cap_flags |= IBV_DEVICE_XRC;
    return error;
}
static struct ibv_context *open_device(struct ibv_device *device) {
    struct ibv_context *context = REAL(ibv_open_device)(device);
    if (!context) return NULL;
    struct verbs_context *table = verbs_get_ctx(context);
    extended_create = (void *)table->create_qp_ex;
    ops = context->ops;
    if (is("xrc")) {
        table->open_xrcd = open_xrcd;
        table->close_xrcd = close_xrcd;
        table->create_srq_ex = create_srq_ex;
        table->get_srq_num = get_srq_num;
        table->create_qp_ex = create_qp_ex;
    } else {
        context->ops.post_recv = post_recv;
        context->ops.post_srq_recv = post_srq_recv;
        context->ops.poll_cq = poll_cq;
    }
    context->ops.post_send = post_send;
    return context;
}
static struct ibv_pd *alloc_pd(struct ibv_context *context) {
    domain = REAL(ibv_alloc_pd)(context);
    if (domain && !is("xrc")) {
        void *memory = malloc(HEADER);
        header = REAL(ibv_reg_mr)(domain, memory, HEADER, IBV_ACCESS_LOCAL_WRITE);
    }
    return domain;
}
static int dealloc_pd(struct ibv_pd *pd) {
    if (header) REAL(ibv_dereg_mr)(header);
    header = NULL;
    return REAL(ibv_dealloc_pd)(pd);
}

void *dlsym(void *library, const char *name) {
    static const struct { const char *name; void *function; } made[] = {
        { "ibv_open_device", open_device }, { "ibv_query_device", query_device },
        { "ibv_alloc_pd", alloc_pd }, { "ibv_dealloc_pd", dealloc_pd },
        { "ibv_create_qp", create_qp }, { "ibv_modify_qp", modify_qp },
        { "ibv_query_qp", query_qp }, { "ibv_create_srq", create_srq },
        { "mlx5dv_is_supported", is_supported }, { "mlx5dv_create_qp", create_dc },
        { "mlx5dv_qp_ex_from_ibv_qp_ex", extend }, { "efadv_query_device", query_efa },
        { "efadv_create_driver_qp", create_srd }, { "efadv_create_qp_ex", create_srd_ex },
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (!strcmp(name, made[i].name)) return made[i].function;
    static void *(*look_up)(void *, const char *);
    if (!look_up) look_up = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return look_up(library, name);
}
