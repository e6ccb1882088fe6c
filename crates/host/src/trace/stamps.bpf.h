/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0
 *
 * What stamps.bpf.c uses of the kernel, the memory that it shares with the program, and how a
 * stamp is written.
 */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define INLINE static inline __attribute__((always_inline))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

/* <linux/bpf.h> */
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_F_MMAPABLE 1024

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) =
	(void *)2;
static u64 (*const ktime_ns)(void) = (void *)5;
static u32 (*const this_cpu)(void) = (void *)8;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const ns_pid_tgid)(u64 dev, u64 ino, void *to, u32 size) = (void *)120;
static struct task_struct *(*const current_task)(void) = (void *)158;

/* What is used of the kernel's types. */
struct task_struct {
	u32 flags;
	u32 __state;
	u32 pid;
	u32 tgid;
	char comm[16];
} CORE;

struct ns_common {
	u32 inum;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

typedef struct {
	struct net *net;
} CORE possible_net_t;

struct net_device {
	possible_net_t nd_net;
} CORE;

struct sock_common {
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	possible_net_t skc_net;
} CORE;

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
} CORE;

struct socket {
	struct sock *sk;
} CORE;

/* x86 and ARM have the number of the call that returns under two names. */
struct pt_regs___x86 {
	unsigned long orig_ax;
} CORE;

struct pt_regs___arm {
	int syscallno;
} CORE;

/* enum bpf_field_info_kind of <bpf/bpf_core_read.h> */
#define FIELD_EXISTS 2
#define has_field(field) __builtin_preserve_field_info(field, FIELD_EXISTS)

struct tcp_sock {
	u32 write_seq;
	u32 copied_seq;
	u32 rcv_nxt;
	u32 snd_una;
	u32 snd_wnd;
} CORE;

struct sk_buff {
	struct net_device *dev;
	u32 len;
	u8 *head;
	u8 *data;
	u16 network_header;
} CORE;

#define PF_KTHREAD 0x00200000
/* PROC_PID_INIT_INO of <linux/proc_ns.h>: the namespace in which `pid` is a thread's number. */
#define INITIAL_PIDS 0xEFFFFFFCu
#define AF_UNIX 1
#define IPPROTO_TCP 6
#define EAGAIN 11

/* The numbers of `Kind` in mod.rs. */
enum kind {
	SEND = 1,
	QUEUE,
	XMIT,
	NETIF_RX,
	GRO,
	RECEIVE,
	TCP_PROBE,
	READY,
	WAKING,
	SWITCH,
	COPIED,
	IRQ_ENTRY,
	IRQ_EXIT,
	TIMER_ENTRY,
	TIMER_EXIT,
	SOFTIRQ_ENTRY,
	SOFTIRQ_EXIT,
	MIGRATE,
	FAULT,
	RETRANSMIT,
	SYS_ENTER,
	SYS_EXIT,
	QDISC,
	DROPPED,
	NAPI,
	FREQUENCY,
	REFUSED,
};

/* A stamp, as `Stamp` in mod.rs has it. */
struct stamp {
	u64 time_ns; /* CLOCK_MONOTONIC */
	u32 tid;     /* of the thread that ran */
	u32 flow;    /* source port << 16 | destination port, or a thread */
	u32 number;  /* TCP: a sequence number; else by kind */
	u32 length;
	u16 cpu;
	u8 kind;
	u8 flags;
	u32 spare;
};

#define FROM_KERNEL_THREAD 1

#define MOST_CPUS 1024
#define MOST_PIDS (1 << 22)

struct position {
	u64 next;
	u64 others_ns; /* since when this CPU does the network's work for others; 0: it does not */
	u32 softirq;   /* the SoftIRQ in which it does, or 0 */
	u32 seen;      /* whose packets have passed in it */
	u64 refused_ns; /* when a call of ours to send was refused and stamped */
	u64 padding[4];
};

/* Shared with the program, as `Shared` in memory.rs has it. */
struct shared {
	u64 ns_dev; /* the PID namespace in which `controller` is a number */
	u64 ns_ino;
	u32 controller;
	u32 slots;  /* stamps of a CPU */
	u32 adopts; /* whether processes that read from our connections are ours */
	u32 netns;  /* the only network namespace whose packets count; 0: all do */
	u32 itself; /* whether `controller` is ours, from its next thread on */
	u32 least_network_ns; /* shorter work of the network for others is not stamped */
	u32 clock_call; /* the number of clock_gettime, which is not stamped */
	u32 reserved[5];
	struct position positions[MOST_CPUS];
	u8 ports[65536 / 8]; /* local ports of our sockets */
	u8 ours[MOST_PIDS / 8]; /* processes, by their number in the initial namespace */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct shared);
} shared_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct stamp);
} stamps SEC(".maps");

/* A process, as its PID namespace has it. */
struct numbers {
	u32 pid;
	u32 tgid;
};

struct name {
	char comm[16];
};

/* Names of the threads that ran beside ours. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct name);
} names SEC(".maps");

char _license[] SEC("license") = "Dual MIT/GPL";

INLINE struct shared *shared(void)
{
	u32 zero = 0;
	return map_lookup(&shared_map, &zero);
}

INLINE int is_ours(struct shared *s, u32 tgid)
{
	return s->ours[(tgid >> 3) & (MOST_PIDS / 8 - 1)] >> (tgid & 7) & 1;
}

/* What is marked already is only read, here and of ports: a line of memory that two CPUs write for
 * each message costs each of them a fetch from the other. */
INLINE void make_ours(struct shared *s, u32 tgid)
{
	if (!is_ours(s, tgid))
		s->ours[(tgid >> 3) & (MOST_PIDS / 8 - 1)] |= 1 << (tgid & 7);
}

/* The byte of a port. The compiler knows that 16 bits are below the bound and would leave out the
 * mask; verifiers of older kernels forget it when the register was on the stack. */
INLINE u64 byte_of(u64 port)
{
	u64 at = port >> 3;
	asm volatile("%0 &= 8191" : "+r"(at));
	return at;
}

/* Whether packets and sockets of a network namespace count. */
INLINE int is_here(struct shared *s, struct net *net)
{
	return !s->netns || net->ns.inum == s->netns;
}

INLINE int has_port(struct shared *s, u16 port)
{
	return s->ports[byte_of(port)] >> (port & 7) & 1;
}

INLINE void add_port(struct shared *s, u16 port)
{
	if (!has_port(s, port))
		s->ports[byte_of(port)] |= 1 << (port & 7);
}

INLINE u32 tcp_field(const void *field)
{
	u32 value = 0;
	read_kernel(&value, sizeof(value), field);
	return value;
}

/* The byte after the last that the other end's receive window has room for. */
INLINE u32 window_end(struct tcp_sock *tp)
{
	return tcp_field(__builtin_preserve_access_index(&tp->snd_una)) +
	       tcp_field(__builtin_preserve_access_index(&tp->snd_wnd));
}

INLINE u16 swapped(u16 value)
{
	return __builtin_bswap16(value);
}

INLINE u32 outgoing(struct sock *sk)
{
	return (u32)sk->__sk_common.skc_num << 16 | swapped(sk->__sk_common.skc_dport);
}

INLINE u32 incoming(struct sock *sk)
{
	return (u32)swapped(sk->__sk_common.skc_dport) << 16 | sk->__sk_common.skc_num;
}

/* Whether it is one of our sockets, or connected to one. */
INLINE int is_known(struct shared *s, struct sock *sk)
{
	if (!has_port(s, sk->__sk_common.skc_num) &&
	    !has_port(s, swapped(sk->__sk_common.skc_dport)))
		return 0;
	return is_here(s, sk->__sk_common.skc_net.net);
}

/* Two CPUs never write to one slot; an interrupt of this CPU gets a slot of its own, because the
 * position is taken by one atomic instruction. */
INLINE void put(struct shared *s, u64 now, u8 kind, struct task_struct *task, u32 flow,
		u32 number, u32 length)
{
	u32 cpu = this_cpu();
	if (cpu >= MOST_CPUS)
		return;
	u64 at = __sync_fetch_and_add(&s->positions[cpu].next, 1);
	if (at >= s->slots)
		return;
	u32 index = cpu * s->slots + (u32)at;
	struct stamp *to = map_lookup(&stamps, &index);
	if (!to)
		return;
	to->time_ns = now;
	to->tid = task->pid;
	to->flow = flow;
	to->number = number;
	to->length = length;
	to->cpu = cpu;
	to->kind = kind;
	to->flags = task->flags & PF_KTHREAD ? FROM_KERNEL_THREAD : 0;
}

/* SoftIRQs of the network come with each message, whose packets have stamps of their own. Of them
 * the time is stamped in which they work for others, when it is over: all of one without a packet
 * of ours; of one with both, from the begin or a packet of others until one of ours or the end. */
#define NET_TX_SOFTIRQ 2
#define NET_RX_SOFTIRQ 3

#define SEEN_OURS 1
#define SEEN_OTHERS 2
/* Others beside a packet of ours that cost less are not stamped: there is one after each. */
#define LEAST_BESIDE_NS 5000

/* The compiler takes the address before it compares, which verifiers of older kernels refuse of a
 * number without a bound. */
INLINE struct position *own_position(struct shared *s)
{
	u32 cpu = this_cpu();
	u64 at = cpu;
	asm volatile("%0 &= 1023" : "+r"(at));
	return s && cpu < MOST_CPUS ? &s->positions[at] : 0;
}

/* It did so from `others_ns` on. */
INLINE void put_network(struct shared *s, struct position *own, u64 now, struct task_struct *task)
{
	put(s, own->others_ns, SOFTIRQ_ENTRY, task, 0, own->softirq, 0);
	put(s, now, SOFTIRQ_EXIT, task, 0, own->softirq, 0);
}

INLINE void network_begins(u32 number)
{
	struct position *own = own_position(shared());
	if (!own)
		return;
	own->softirq = number;
	own->seen = 0;
	own->others_ns = ktime_ns();
}

INLINE void network_works_for_others(struct shared *s, u64 now)
{
	struct position *own = own_position(s);
	if (!own || !own->softirq)
		return;
	own->seen |= SEEN_OTHERS;
	if (!own->others_ns)
		own->others_ns = now;
}

INLINE void network_works_for_us(struct shared *s, u64 now, struct task_struct *task)
{
	struct position *own = own_position(s);
	if (!own || !own->softirq)
		return;
	if (own->others_ns && own->seen & SEEN_OTHERS && now - own->others_ns >= LEAST_BESIDE_NS)
		put_network(s, own, now, task);
	own->seen = SEEN_OURS;
	own->others_ns = 0;
}

INLINE void network_ends(void)
{
	struct shared *s = shared();
	struct position *own = own_position(s);
	if (!own || !own->softirq)
		return;
	if (own->others_ns) {
		u64 now = ktime_ns();
		u64 least = own->seen & SEEN_OURS ? LEAST_BESIDE_NS : s->least_network_ns;
		if (now - own->others_ns >= least)
			put_network(s, own, now, current_task());
	}
	own->softirq = 0;
	own->others_ns = 0;
}

/* A thread that polls asks again at once, and each time is not needed. */
#define LEAST_APART_NS 10000

/* A call to send that would have to wait for room. */
INLINE int sent(int result)
{
	struct shared *s = shared();
	struct position *own = own_position(s);
	struct task_struct *task = current_task();
	if (!own || result != -EAGAIN || !is_ours(s, task->tgid))
		return 0;
	u64 now = ktime_ns();
	if (now - own->refused_ns < LEAST_APART_NS)
		return 0;
	own->refused_ns = now;
	put(s, now, REFUSED, task, 0, 0, 0);
	return 0;
}
