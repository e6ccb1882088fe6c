/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0
 *
 * Stamps of a message's way through the kernel.
 *
 * Each program hangs at one trace point of the kernel's own (tp_btf, a raw trace point with typed
 * arguments) and writes when one of our threads, or a packet of one of our sockets, passed it.
 * All of them are optional: what a kernel lacks is not loaded, and its stage is merged into the
 * next. Nothing is changed, held up or dropped, and nothing is read of a payload but the number
 * that wiregauge wrote into it.
 *
 * Made into stamps.bpf.o by `cargo run --manifest-path xtask/Cargo.toml --no-default-features --
 * bpf`. Only the fields named here are used of the kernel's types; where they lie is found when
 * the program is loaded (CO-RE).
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

struct sock_common {
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
} CORE;

struct sock {
	struct sock_common __sk_common;
} CORE;

struct tcp_sock {
	u32 write_seq;
	u32 copied_seq;
	u32 rcv_nxt;
} CORE;

struct sk_buff {
	u32 len;
	u8 *head;
	u8 *data;
	u16 network_header;
} CORE;

#define PF_KTHREAD 0x00200000
#define AF_UNIX 1

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
	SENT,
	DROP,
	QDISC,
};

/* A stamp, as `Stamp` in mod.rs has it. */
struct stamp {
	u64 time_ns; /* CLOCK_MONOTONIC */
	u32 tid;     /* of the thread that ran */
	u32 flow;    /* source port << 16 | destination port, or a thread */
	u32 number;  /* TCP: the sequence number; else by kind */
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
	u64 padding[7];
};

/* Shared with the program, as `Shared` in memory.rs has it. */
struct shared {
	u64 ns_dev; /* the PID namespace in which `controller` is a number */
	u64 ns_ino;
	u32 controller;
	u32 slots; /* stamps of a CPU */
	u64 reserved[5];
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

INLINE int has_port(struct shared *s, u16 port)
{
	return s->ports[port >> 3] >> (port & 7) & 1;
}

INLINE void add_port(struct shared *s, u16 port)
{
	s->ports[port >> 3] |= 1 << (port & 7);
}

INLINE u16 swapped(u16 value)
{
	return __builtin_bswap16(value);
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

INLINE u32 outgoing(struct sock *sk)
{
	return (u32)sk->__sk_common.skc_num << 16 | swapped(sk->__sk_common.skc_dport);
}

INLINE u32 incoming(struct sock *sk)
{
	return (u32)swapped(sk->__sk_common.skc_dport) << 16 | sk->__sk_common.skc_num;
}

INLINE u32 tcp_field(const void *field)
{
	u32 value = 0;
	read_kernel(&value, sizeof(value), field);
	return value;
}

/* A packet whose network header begins at `header`: of one of our sockets, else left out. */
INLINE void packet(struct shared *s, u8 kind, const u8 *header)
{
	u64 now = ktime_ns();
	u8 h[56];
	u32 whole, sport, dport, number, length, protocol;

	if (read_kernel(h, sizeof(h), header))
		return;
	if (h[0] >> 4 == 4 && (h[0] & 15) == 5) {
		protocol = h[9];
		whole = (h[2] << 8 | h[3]) - 20;
		sport = h[20] << 8 | h[21];
		dport = h[22] << 8 | h[23];
		if (protocol == 6) {
			number = (u32)h[24] << 24 | h[25] << 16 | h[26] << 8 | h[27];
			length = whole - (h[32] >> 4) * 4;
		} else {
			number = *(u32 *)&h[28];
			length = whole - 8;
		}
	} else if (h[0] >> 4 == 6) {
		protocol = h[6];
		whole = h[4] << 8 | h[5];
		sport = h[40] << 8 | h[41];
		dport = h[42] << 8 | h[43];
		if (protocol == 6) {
			number = (u32)h[44] << 24 | h[45] << 16 | h[46] << 8 | h[47];
			length = whole - (h[52] >> 4) * 4;
		} else {
			number = *(u32 *)&h[48];
			length = whole - 8;
		}
	} else {
		return;
	}
	if (protocol != 6 && protocol != 17)
		return;
	struct task_struct *task = current_task();
	if (kind == QUEUE && is_ours(s, task->tgid))
		add_port(s, sport);
	if (!has_port(s, sport) && !has_port(s, dport))
		return;
	put(s, now, kind, task, sport << 16 | dport, number, length);
}

SEC("tp_btf/tcp_sendmsg_locked")
int wg_send(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (!s || !is_ours(s, task->tgid))
		return 0;
	u64 now = ktime_ns();
	struct sock *sk = (void *)ctx[0];
	add_port(s, sk->__sk_common.skc_num);
	struct tcp_sock *tp = (void *)sk;
	put(s, now, SEND, task, outgoing(sk),
	    tcp_field(__builtin_preserve_access_index(&tp->write_seq)), 0);
	return 0;
}

SEC("tp_btf/net_dev_queue")
int wg_queue(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, QUEUE, skb->head + skb->network_header);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int wg_xmit(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, XMIT, skb->head + skb->network_header);
	return 0;
}

/* Only of a device with a queue, and only where the packet is not sent at once. */
SEC("tp_btf/qdisc_enqueue")
int wg_qdisc(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[2];
	if (s)
		packet(s, QDISC, skb->head + skb->network_header);
	return 0;
}

SEC("tp_btf/netif_rx")
int wg_netif_rx(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, NETIF_RX, skb->data);
	return 0;
}

SEC("tp_btf/napi_gro_receive_entry")
int wg_gro(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, GRO, skb->data);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int wg_receive(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, RECEIVE, skb->data);
	return 0;
}

SEC("tp_btf/tcp_probe")
int wg_tcp_probe(u64 *ctx)
{
	struct shared *s = shared();
	struct sock *sk = (void *)ctx[0];
	struct sk_buff *skb = (void *)ctx[1];
	if (!s || !has_port(s, sk->__sk_common.skc_num))
		return 0;
	u64 now = ktime_ns();
	put(s, now, TCP_PROBE, current_task(), incoming(sk), 0, skb->len);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int wg_ready(u64 *ctx)
{
	struct shared *s = shared();
	struct sock *sk = (void *)ctx[0];
	struct task_struct *task = current_task();
	if (!s)
		return 0;
	u64 now = ktime_ns();
	if (sk->__sk_common.skc_family == AF_UNIX) {
		if (is_ours(s, task->tgid))
			put(s, now, READY, task, 0, 0, 0);
	} else if (has_port(s, sk->__sk_common.skc_num)) {
		put(s, now, READY, task, incoming(sk), 0, 0);
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int wg_waking(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *woken = (void *)ctx[0];
	if (!s || !is_ours(s, woken->tgid))
		return 0;
	put(s, ktime_ns(), WAKING, current_task(), woken->pid, 0, 0);
	return 0;
}

INLINE void keep_name(struct task_struct *task)
{
	u32 tid = task->pid;
	struct name name;
	if (!tid || map_lookup(&names, &tid))
		return;
	if (!read_kernel(&name, sizeof(name), __builtin_preserve_access_index(&task->comm)))
		map_update(&names, &tid, &name, 0);
}

SEC("tp_btf/sched_switch")
int wg_switch(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *from = (void *)ctx[1];
	struct task_struct *to = (void *)ctx[2];
	if (!s)
		return 0;
	int leaves = is_ours(s, from->tgid), comes = is_ours(s, to->tgid);
	if (!leaves && !comes)
		return 0;
	u64 now = ktime_ns();
	put(s, now, SWITCH, from, to->pid, from->__state, leaves | comes << 1);
	if (!leaves)
		keep_name(from);
	if (!comes)
		keep_name(to);
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int wg_tcp_copied(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (!s || !is_ours(s, task->tgid))
		return 0;
	u64 now = ktime_ns();
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = (void *)sk;
	put(s, now, COPIED, task, incoming(sk),
	    tcp_field(__builtin_preserve_access_index(&tp->copied_seq)), 0);
	return 0;
}

SEC("tp_btf/skb_copy_datagram_iovec")
int wg_copied(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (!s || !is_ours(s, task->tgid))
		return 0;
	put(s, ktime_ns(), COPIED, task, 0, 0, (u32)ctx[1]);
	return 0;
}

/* What a small datagram is copied by passes no trace point; freeing it after the copy does. */
SEC("tp_btf/consume_skb")
int wg_consumed(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	(void)ctx;
	if (!s || !is_ours(s, task->tgid))
		return 0;
	put(s, ktime_ns(), COPIED, task, 0, 0, 0);
	return 0;
}

SEC("tp_btf/sock_send_length")
int wg_sent(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (!s || !is_ours(s, task->tgid))
		return 0;
	put(s, ktime_ns(), SENT, task, 0, 0, (u32)ctx[1]);
	return 0;
}

INLINE void interrupt(u8 kind, u32 number)
{
	struct shared *s = shared();
	if (s)
		put(s, ktime_ns(), kind, current_task(), 0, number, 0);
}

SEC("tp_btf/irq_handler_entry")
int wg_irq_entry(u64 *ctx)
{
	interrupt(IRQ_ENTRY, (u32)ctx[0]);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int wg_irq_exit(u64 *ctx)
{
	interrupt(IRQ_EXIT, (u32)ctx[0]);
	return 0;
}

SEC("tp_btf/local_timer_entry")
int wg_timer_entry(u64 *ctx)
{
	interrupt(TIMER_ENTRY, (u32)ctx[0]);
	return 0;
}

SEC("tp_btf/local_timer_exit")
int wg_timer_exit(u64 *ctx)
{
	interrupt(TIMER_EXIT, (u32)ctx[0]);
	return 0;
}

/* Those of the network come with each message, and have stamps of their own. */
#define NET_TX_SOFTIRQ 2
#define NET_RX_SOFTIRQ 3

SEC("tp_btf/softirq_entry")
int wg_softirq_entry(u64 *ctx)
{
	u32 number = (u32)ctx[0];
	if (number != NET_RX_SOFTIRQ && number != NET_TX_SOFTIRQ)
		interrupt(SOFTIRQ_ENTRY, number);
	return 0;
}

SEC("tp_btf/softirq_exit")
int wg_softirq_exit(u64 *ctx)
{
	u32 number = (u32)ctx[0];
	if (number != NET_RX_SOFTIRQ && number != NET_TX_SOFTIRQ)
		interrupt(SOFTIRQ_EXIT, number);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int wg_migrate(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *moved = (void *)ctx[0];
	if (s && is_ours(s, moved->tgid))
		put(s, ktime_ns(), MIGRATE, current_task(), moved->pid, (u32)ctx[1], 0);
	return 0;
}

SEC("tp_btf/page_fault_user")
int wg_fault(u64 *ctx)
{
	(void)ctx;
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (s && is_ours(s, task->tgid))
		put(s, ktime_ns(), FAULT, task, 0, 0, 0);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int wg_retransmit(u64 *ctx)
{
	struct shared *s = shared();
	struct sock *sk = (void *)ctx[0];
	if (s && has_port(s, sk->__sk_common.skc_num))
		put(s, ktime_ns(), RETRANSMIT, current_task(), outgoing(sk), 0, 0);
	return 0;
}

SEC("tp_btf/sys_enter")
int wg_sys_enter(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (s && is_ours(s, task->tgid))
		put(s, ktime_ns(), SYS_ENTER, task, 0, (u32)ctx[1], 0);
	return 0;
}

SEC("tp_btf/sys_exit")
int wg_sys_exit(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (s && is_ours(s, task->tgid))
		put(s, ktime_ns(), SYS_EXIT, task, 0, 0, (u32)ctx[1]);
	return 0;
}

struct numbers {
	u32 pid;
	u32 tgid;
};

/* Children of the process that traces are ours, and theirs too. In a container its number is that
 * of a PID namespace, which only this helper knows. */
SEC("tp_btf/sched_process_fork")
int wg_fork(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];
	struct numbers numbers = {};
	u32 tgid = child->tgid;

	if (!s)
		return 0;
	if (!is_ours(s, parent->tgid)) {
		if (parent->tgid == tgid)
			return 0;
		if (ns_pid_tgid(s->ns_dev, s->ns_ino, &numbers, sizeof(numbers)))
			return 0;
		if (numbers.tgid != s->controller)
			return 0;
	}
	s->ours[(tgid >> 3) & (MOST_PIDS / 8 - 1)] |= 1 << (tgid & 7);
	return 0;
}
