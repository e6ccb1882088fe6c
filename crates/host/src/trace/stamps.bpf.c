/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0
 *
 * Stamps of a message's way through the kernel.
 *
 * Each program hangs at one trace point of the kernel's own (tp_btf, a raw trace point with typed
 * arguments) and writes when one of our threads, or a packet of one of our sockets, passed it.
 * Where a kernel lacks one, a program at a function that is passed at the same place stands in
 * (fentry, fexit). All of them are optional: what a kernel lacks is not loaded, and its stage is
 * merged into the next. Nothing is changed, held up or dropped, and nothing is read of a payload
 * but the number that wiregauge wrote into it.
 *
 * Made into stamps.bpf.o by `cargo run --manifest-path xtask/Cargo.toml --no-default-features --
 * bpf`. Only the fields named here are used of the kernel's types; where they lie is found when
 * the program is loaded (CO-RE).
 */

#include "stamps.bpf.h"
#include "packet.bpf.h"

/* Whether a process of ours reads from a socket. In another network namespace of this machine the
 * process at the other end of a connection is ours, and so are its children: the sshd of a session,
 * and what that starts. */
INLINE int is_our_reader(struct shared *s, struct task_struct *task, struct sock *sk)
{
	if (is_ours(s, task->tgid)) {
		/* It may never send, and the other end's port may be known to another kernel alone. */
		if (s->itself && sk->__sk_common.skc_family != AF_UNIX)
			add_port(s, sk->__sk_common.skc_num);
		return 1;
	}
	if (!s->adopts || sk->__sk_common.skc_family == AF_UNIX)
		return 0;
	if (!has_port(s, swapped(sk->__sk_common.skc_dport)))
		return 0;
	make_ours(s, task->tgid);
	return 1;
}

INLINE int sends(struct sock *sk)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (!s || !is_ours(s, task->tgid))
		return 0;
	u64 now = ktime_ns();
	add_port(s, sk->__sk_common.skc_num);
	struct tcp_sock *tp = (void *)sk;
	put(s, now, SEND, task, outgoing(sk),
	    tcp_field(__builtin_preserve_access_index(&tp->write_seq)), 0);
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int wg_send(u64 *ctx)
{
	return sends((void *)ctx[0]);
}

SEC("fentry/tcp_sendmsg_locked")
int wg_send_entry(u64 *ctx)
{
	return sends((void *)ctx[0]);
}

SEC("tp_btf/net_dev_queue")
int wg_queue(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, QUEUE, skb, skb->head + skb->network_header);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int wg_xmit(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, XMIT, skb, skb->head + skb->network_header);
	return 0;
}

/* Only of a device with a queue, and only where the packet is not sent at once. */
SEC("tp_btf/qdisc_enqueue")
int wg_qdisc(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[2];
	if (s)
		packet(s, QDISC, skb, skb->head + skb->network_header);
	return 0;
}

SEC("tp_btf/netif_rx")
int wg_netif_rx(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, NETIF_RX, skb, skb->data);
	return 0;
}

SEC("tp_btf/napi_gro_receive_entry")
int wg_gro(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, GRO, skb, skb->data);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int wg_receive(u64 *ctx)
{
	struct shared *s = shared();
	struct sk_buff *skb = (void *)ctx[0];
	if (s)
		packet(s, RECEIVE, skb, skb->data);
	return 0;
}

/* The end of a poll that brought something, whosever: how many packets it took. */
SEC("tp_btf/napi_poll")
int wg_napi(u64 *ctx)
{
	struct shared *s = shared();
	int work = (int)ctx[1];
	if (s && work > 0)
		put(s, ktime_ns(), NAPI, current_task(), 0, 0, work);
	return 0;
}

SEC("tp_btf/tcp_probe")
int wg_tcp_probe(u64 *ctx)
{
	struct shared *s = shared();
	struct sock *sk = (void *)ctx[0];
	struct sk_buff *skb = (void *)ctx[1];
	u8 h[20];
	if (!s || !is_known(s, sk))
		return 0;
	u64 now = ktime_ns();
	/* The data still begins with TCP's header. */
	if (read_kernel(h, sizeof(h), skb->data))
		return 0;
	u32 number = (u32)h[4] << 24 | h[5] << 16 | h[6] << 8 | h[7];
	u32 length = skb->len - (h[12] >> 4) * 4;
	/* An acknowledgement: how far the other end's receive window went before it. */
	if (!length)
		number = window_end((struct tcp_sock *)sk);
	put(s, now, TCP_PROBE, current_task(), incoming(sk), number, length);
	return 0;
}

INLINE int is_readable(struct sock *sk)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (!s)
		return 0;
	u64 now = ktime_ns();
	if (sk->__sk_common.skc_family == AF_UNIX) {
		if (is_ours(s, task->tgid))
			put(s, now, READY, task, 0, 0, 0);
	} else if (is_known(s, sk)) {
		u32 upto = 0;
		struct tcp_sock *tp = (void *)sk;
		if (sk->sk_protocol == IPPROTO_TCP)
			upto = tcp_field(__builtin_preserve_access_index(&tp->rcv_nxt));
		put(s, now, READY, task, incoming(sk), upto, 0);
	}
	return 0;
}

SEC("tp_btf/sk_data_ready")
int wg_ready(u64 *ctx)
{
	return is_readable((void *)ctx[0]);
}

/* That function is where the trace point is, in kernels that have it. */
SEC("fentry/sock_def_readable")
int wg_ready_entry(u64 *ctx)
{
	return is_readable((void *)ctx[0]);
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
	/* The thread that leaves is still the current one. */
	struct numbers own = {.pid = from->pid};
	if (leaves && s->ns_ino != INITIAL_PIDS)
		ns_pid_tgid(s->ns_dev, s->ns_ino, &own, sizeof(own));
	put(s, now, SWITCH, from, to->pid, from->__state, leaves | comes << 1 | own.pid << 2);
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
	struct sock *sk = (void *)ctx[0];
	if (!s || !is_our_reader(s, task, sk))
		return 0;
	u64 now = ktime_ns();
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
	u64 now = ktime_ns();
	struct sk_buff *skb = (void *)ctx[0];
	put(s, now, COPIED, task, 0, skb->len, (u32)ctx[1]);
	return 0;
}

/* A small datagram is copied and freed without a trace point; the end of the call is one. It is
 * passed by calls that find nothing, too. */
INLINE int received(struct sock *sk, int length)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (!s || length <= 0 || !is_our_reader(s, task, sk))
		return 0;
	u64 now = ktime_ns();
	u32 flow = sk->__sk_common.skc_family == AF_UNIX ? 0 : incoming(sk);
	put(s, now, COPIED, task, flow, 0, length);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int wg_received(u64 *ctx)
{
	return received((void *)ctx[0], (int)ctx[1]);
}

/* The returned length follows the four arguments. */
SEC("fexit/inet_recvmsg")
int wg_received_exit(u64 *ctx)
{
	struct socket *socket = (void *)ctx[0];
	return received(socket->sk, (int)ctx[4]);
}

SEC("fexit/inet6_recvmsg")
int wg_received_exit6(u64 *ctx)
{
	struct socket *socket = (void *)ctx[0];
	return received(socket->sk, (int)ctx[4]);
}

SEC("tp_btf/sock_send_length")
int wg_refused(u64 *ctx)
{
	return sent((int)ctx[1]);
}

/* The result follows the three arguments. */
SEC("fexit/unix_stream_sendmsg")
int wg_refused_exit(u64 *ctx)
{
	return sent((int)ctx[3]);
}

SEC("fexit/unix_dgram_sendmsg")
int wg_refused_exit_dgram(u64 *ctx)
{
	return sent((int)ctx[3]);
}

/* A datagram that finds no room in the buffer of its socket. */
SEC("tp_btf/udp_fail_queue_rcv_skb")
int wg_dropped(u64 *ctx)
{
	struct shared *s = shared();
	struct sock *sk = (void *)ctx[1];
	if (s && is_known(s, sk))
		put(s, ktime_ns(), DROPPED, current_task(), incoming(sk), 0, 0);
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

SEC("tp_btf/softirq_entry")
int wg_softirq_entry(u64 *ctx)
{
	u32 number = (u32)ctx[0];
	if (number != NET_RX_SOFTIRQ && number != NET_TX_SOFTIRQ)
		interrupt(SOFTIRQ_ENTRY, number);
	else
		network_begins(number);
	return 0;
}

SEC("tp_btf/softirq_exit")
int wg_softirq_exit(u64 *ctx)
{
	u32 number = (u32)ctx[0];
	if (number != NET_RX_SOFTIRQ && number != NET_TX_SOFTIRQ)
		interrupt(SOFTIRQ_EXIT, number);
	else
		network_ends();
	return 0;
}

/* A CPU of any number gets another frequency, in kHz. */
SEC("tp_btf/cpu_frequency")
int wg_frequency(u64 *ctx)
{
	struct shared *s = shared();
	if (s)
		put(s, ktime_ns(), FREQUENCY, current_task(), (u32)ctx[1], (u32)ctx[0], 0);
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
	if (s && has_port(s, sk->__sk_common.skc_num) &&
	    is_here(s, sk->__sk_common.skc_net.net))
		put(s, ktime_ns(), RETRANSMIT, current_task(), outgoing(sk), 0, 0);
	return 0;
}

/* Where the kernel reads no clock without a call (HPET), a thread that waits for a time makes as
 * many as it can, and the memory would be full of them. */
SEC("tp_btf/sys_enter")
int wg_sys_enter(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	u32 call = (u32)ctx[1];
	if (s && call != s->clock_call && is_ours(s, task->tgid))
		put(s, ktime_ns(), SYS_ENTER, task, 0, call, 0);
	return 0;
}

INLINE u32 call_of(void *regs)
{
	struct pt_regs___x86 *x86 = regs;
	struct pt_regs___arm *arm = regs;
	if (has_field(x86->orig_ax))
		return x86->orig_ax;
	if (has_field(arm->syscallno))
		return arm->syscallno;
	return -1;
}

SEC("tp_btf/sys_exit")
int wg_sys_exit(u64 *ctx)
{
	struct shared *s = shared();
	struct task_struct *task = current_task();
	if (s && is_ours(s, task->tgid) && call_of((void *)ctx[0]) != s->clock_call)
		put(s, ktime_ns(), SYS_EXIT, task, 0, 0, (u32)ctx[1]);
	return 0;
}

/* Children of the process that traces are ours, and theirs; where it traces itself, its threads. In
 * a container its number is that of a PID namespace, which only this helper knows. */
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
		if (parent->tgid == tgid && !s->itself)
			return 0;
		if (ns_pid_tgid(s->ns_dev, s->ns_ino, &numbers, sizeof(numbers)))
			return 0;
		if (numbers.tgid != s->controller)
			return 0;
	}
	make_ours(s, tgid);
	return 0;
}
