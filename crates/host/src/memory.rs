//! Sample memory and message buffers that never fault while a run measures.

use crate::files::read_text;
use rustix::io::Errno;
use rustix::mm::Advice;
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Once;

/// Stack below the caller that is touched: more than the frames of any measured loop take.
const STACK_BYTES: usize = 128 << 10;
/// Memory of the allocator that is touched: the few small tables that a loop makes before its first
/// message. Below the 128 KiB from which glibc maps, and gives back, each allocation by itself.
const HEAP_BYTES: usize = 96 << 10;
/// Longest list of mappings that is read: room for 65530 of them (vm.max_map_count).
const MAX_LIST_BYTES: u64 = 16 << 20;
/// A larger mapping is no program or library, but a file that somebody maps.
const MAX_MAPPING_BYTES: usize = 512 << 20;

/// Writes to every page of `region` what stands there, so that the kernel gives the page now.
///
/// Reading alone would leave anonymous pages mapped to the shared page of zeros. Not for memory
/// to which somebody else writes meanwhile: a write of theirs could be undone.
pub fn touch<T>(region: &mut [T]) {
    let bytes = size_of_val(region);
    let start = region.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // The last page starts after the last step where the region is not aligned to pages.
    let last = bytes.checked_sub(1);
    for offset in (0..bytes).step_by(rustix::param::page_size()).chain(last) {
        // SAFETY: `offset < bytes`, so the byte lies in the region, which is borrowed mutably;
        // `MaybeUninit<u8>` may hold any byte (padding too), and the same byte is written back.
        unsafe {
            let byte = start.add(offset);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Has this thread take now the page faults that its measured loop would take at its first pass:
/// those of code and constants of the program and of the libraries that it has loaded, of the stack
/// below, and of small allocations. The kernel maps code page by page as it is reached, 2 to 70
/// faults of a loop; each takes a microsecond where the page is cached, else milliseconds.
pub fn prefault() {
    map_program();
    touch_stack();
    let mut heap: Vec<u8> = Vec::with_capacity(HEAP_BYTES);
    touch(heap.spare_capacity_mut());
}

/// Touches the stack below the caller.
#[inline(never)]
fn touch_stack() {
    touch(&mut [MaybeUninit::<u8>::uninit(); STACK_BYTES]);
}

/// Maps all pages of the program and its libraries, once in a process, whose threads have them in
/// common. A kernel before 5.14, which cannot, leaves them to be mapped when they are reached.
fn map_program() {
    static MAPPED: Once = Once::new();
    MAPPED.call_once(|| {
        let maps = read_text(Path::new("/proc/self/maps"), MAX_LIST_BYTES).unwrap_or_default();
        for FileMapping { start, bytes, advice, .. } in program_mappings(&maps) {
            // SAFETY: MADV_POPULATE_READ and MADV_POPULATE_WRITE (madvise(2)) change neither
            // contents nor protection of any mapping, whatever has become of this one meanwhile.
            let _ = unsafe { rustix::mm::madvise(start as *mut _, bytes, advice) };
        }
    });
}

/// A private mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FileMapping<'a> {
    path: &'a str,
    start: usize,
    bytes: usize,
    is_code: bool,
    /// Populates it: code and constants by reading, variables by writing.
    advice: Advice,
}

impl<'a> FileMapping<'a> {
    /// Reads a line of /proc/self/maps. `None`: another mapping.
    fn read(line: &'a str) -> Option<FileMapping<'a>> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let protection = words.next()?;
        let advice = match protection {
            "r-xp" | "r--p" => Advice::LinuxPopulateRead,
            "rw-p" => Advice::LinuxPopulateWrite,
            _ => return None,
        };
        let path = &line[line.find('/')?..];
        let start = usize::from_str_radix(start, 16).ok()?;
        let bytes = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
        let is_small = bytes <= MAX_MAPPING_BYTES;
        let is_code = protection == "r-xp";
        is_small.then_some(FileMapping { path, start, bytes, is_code, advice })
    }
}

/// Returns the mappings of the files that have code: those of other files, which somebody maps as
/// data, would only take memory.
fn program_mappings(maps: &str) -> Vec<FileMapping<'_>> {
    let all: Vec<FileMapping<'_>> = maps.lines().filter_map(FileMapping::read).collect();
    let with_code: BTreeSet<&str> =
        all.iter().filter(|one| one.is_code).map(|one| one.path).collect();
    all.into_iter().filter(|one| with_code.contains(one.path)).collect()
}

/// Locks the pages of `region` in memory (mlock) until they are unmapped.
///
/// # Errors
/// Why they could not be locked, in a sentence. The run goes on with touched memory; the record
/// says so.
pub fn lock<T>(region: &mut [T]) -> Result<(), String> {
    let bytes = size_of_val(region);
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: mlock(2) changes neither contents nor protection, and the range is one borrowed
    // allocation; whole pages are locked, which neighbours cannot notice.
    let locked = unsafe { rustix::mm::mlock(region.as_mut_ptr().cast(), bytes) };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    locked.map_err(|errno| unlocked(bytes, errno, limit))
}

fn unlocked(bytes: usize, errno: Errno, limit: Option<u64>) -> String {
    match (errno, limit) {
        (Errno::NOMEM | Errno::PERM | Errno::AGAIN, Some(limit)) => {
            format!("cannot lock {bytes} B: the limit is {limit} B (RLIMIT_MEMLOCK)")
        }
        _ => format!("cannot lock {bytes} B: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_changes_nothing() {
        let mut region: Vec<u64> = (0..10_000).collect();
        touch(&mut region);
        assert!(region.iter().copied().eq(0..10_000));
        touch::<u64>(&mut []);
    }

    #[test]
    fn mappings_of_the_program_are_told_from_others() {
        let maps = "\
55d0a0000000-55d0a0003000 r-xp 00001000 fe:01 42      /usr/bin/my program
55d0a0003000-55d0a0004000 r--p 00001000 fe:01 42      /usr/bin/my program
55d0a0004000-55d0a0005000 rw-p 00001000 fe:01 42      /usr/bin/my program
55d0b0000000-55d0b0003000 rw-p 00000000 00:00 0      [heap]
7f00a0000000-7f00a0003000 rw-p 00000000 00:00 0
7f00a0000000-7f00a0003000 rw-s 00000000 00:01 9      /memfd:samples (deleted)
7f00a0000000-7f00a0003000 rw-p 00000000 00:01 9      /anon_hugepage (deleted)
7f00a0000000-7f00a0003000 r--p 00000000 00:05 9      /dev/infiniband/uverbs0
7f00a0000000-7fffa0003000 r-xp 00000000 fe:01 9      /data/large
7f00a0003000-7f00a0000000 r-xp 00000000 fe:01 9      /backwards

x-y r--p
";
        let found: Vec<_> = program_mappings(maps)
            .into_iter()
            .map(|one| (one.path, one.start, one.bytes, one.advice))
            .collect();
        let path = "/usr/bin/my program";
        let start = 0x55d0_a000_0000;
        assert_eq!(
            found,
            [
                (path, start, 0x3000, Advice::LinuxPopulateRead),
                (path, start + 0x3000, 0x1000, Advice::LinuxPopulateRead),
                (path, start + 0x4000, 0x1000, Advice::LinuxPopulateWrite),
            ]
        );
    }

    #[test]
    fn what_was_touched_before_takes_no_fault() {
        #[inline(never)]
        fn use_stack() -> u8 {
            let mut room = [MaybeUninit::<u8>::uninit(); STACK_BYTES / 2];
            touch(&mut room);
            std::hint::black_box(room.len() as u8)
        }
        // A thread's memory is its own, whatever the other tests do.
        let faults = std::thread::spawn(|| {
            prefault();
            let before = crate::ResourceUse::of_thread().page_faults;
            use_stack();
            let mut some = vec![1u8; HEAP_BYTES / 2];
            touch(&mut some);
            crate::ResourceUse::of_thread().page_faults - before
        });
        let faults = faults.join().unwrap();
        // Each alone has 12 pages or more.
        assert!(faults < 8, "{faults}");
    }

    #[test]
    fn a_page_is_locked_or_the_reason_is_a_sentence() {
        let mut region = vec![0u8; 100];
        if let Err(error) = lock(&mut region) {
            assert!(error.starts_with("cannot lock 100 B: "), "{error}");
        }
        assert!(lock::<u8>(&mut []).is_ok());
    }

    #[test]
    fn the_limit_is_named_with_its_remedy() {
        let text = unlocked(100, Errno::NOMEM, Some(64));
        assert_eq!(text, "cannot lock 100 B: the limit is 64 B (RLIMIT_MEMLOCK)");
    }
}
