//! The number of processors that this process may use.
//!
//! On Linux that is the smallest of: the processors in the affinity mask, and the quota of each
//! control group above the process, version 1 or 2, rounded up. Elsewhere the standard library's
//! answer counts; it has the same rules and more code.

use std::fs::File;
use std::io::Read;

/// The most bytes that are read of one of the system's files, which are all shorter.
const MAX_BYTES: u64 = 1 << 20;

/// Returns how many threads can run at the same time, at least one.
///
/// The answer is not cached; limits may change while the process runs.
pub fn available_parallelism() -> usize {
    limit(&text_of, in_mask())
}

/// Returns the text of one of the system's files.
#[inline(never)]
fn text_of(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns the processors in the affinity mask, if there are not too many for the system call.
#[cfg(target_os = "linux")]
fn in_mask() -> Option<usize> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    Some(set.count() as usize)
}

#[cfg(not(target_os = "linux"))]
fn in_mask() -> Option<usize> {
    std::thread::available_parallelism().ok().map(Into::into)
}

/// Finds the least of the mask and what the system's files say; `read` gives their content.
fn limit(read: &dyn Fn(&str) -> Option<String>, in_mask: Option<usize>) -> usize {
    let listed = || affinity(&read("/proc/thread-self/status")?);
    let affinity = in_mask.or_else(listed);
    let limits = [affinity, quota(read)].into_iter().flatten();
    limits.min().unwrap_or(1).max(1)
}

/// Counts the processors in the line `Cpus_allowed_list:` of a status file.
fn affinity(status: &str) -> Option<usize> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().split(',').try_fold(0usize, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// Returns the smallest quota of the control groups that the process is in, in whole processors.
fn quota(read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let groups = read("/proc/self/cgroup")?;
    let mounts = read("/proc/self/mountinfo")?;
    groups
        .lines()
        .filter_map(|line| quota_of(read, line, &mounts))
        .min()
}

/// Returns the smallest quota along one line `id:controllers:path` of the process's groups.
fn quota_of(read: &dyn Fn(&str) -> Option<String>, line: &str, mounts: &str) -> Option<usize> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let is_unified = controllers.is_empty();
    if !is_unified && !has_cpu(controllers) {
        return None;
    }
    let mount = mounts.lines().filter_map(Mount::parse).find(|mount| {
        if is_unified {
            return mount.kind == "cgroup2";
        }
        mount.kind == "cgroup" && has_cpu(mount.options)
    })?;
    // A container may see only its part of the tree: the mount's root is cut off the path.
    let below = path.strip_prefix(mount.root).unwrap_or(path);
    let below = below.trim_start_matches('/');
    let top = mount.point.trim_end_matches('/');
    let mut folder = format!("{top}/{below}");
    let mut smallest: Option<usize> = None;
    while folder.len() >= top.len() {
        folder.truncate(folder.trim_end_matches('/').len());
        let here = if is_unified {
            quota_v2(read, &folder)
        } else {
            quota_v1(read, &folder)
        };
        smallest = [smallest, here].into_iter().flatten().min();
        let Some(parent) = folder.rfind('/') else {
            break;
        };
        folder.truncate(parent);
    }
    smallest
}

/// Returns whether a list has `cpu`.
fn has_cpu(list: &str) -> bool {
    list.split(',').any(|word| word == "cpu")
}

/// One line of `/proc/self/mountinfo`.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// Reads `id parent major:minor root point flags [tags] - kind source options`.
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let mut words = line.split(' ').skip(3);
        Some(Mount {
            root: words.next()?,
            point: words.next()?,
            kind: words.find(|word| *word == "-").and(words.next())?,
            options: words.nth(1)?,
        })
    }
}

/// Returns the quota of a control group of version 2: `cpu.max` holds `quota period`, or `max
/// period`.
fn quota_v2(read: &dyn Fn(&str) -> Option<String>, folder: &str) -> Option<usize> {
    let text = read(&format!("{folder}/cpu.max"))?;
    let (quota, period) = text.trim().split_once(' ')?;
    processors(quota.parse().ok()?, period.parse().ok()?)
}

/// Returns the quota of a control group of version 1: two files hold quota and period; a quota of
/// -1 means none.
fn quota_v1(read: &dyn Fn(&str) -> Option<String>, folder: &str) -> Option<usize> {
    let number = |name| read(&format!("{folder}/{name}"))?.trim().parse().ok();
    processors(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

/// Returns how many whole processors a quota is worth, rounded up.
fn processors(quota: i64, period: i64) -> Option<usize> {
    if quota <= 0 || period <= 0 {
        return None;
    }
    usize::try_from(quota.unsigned_abs().div_ceil(period.unsigned_abs())).ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(in_mask: Option<usize>, expected: usize, files: &[(&str, &str)]) {
        let read = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, content)| (*content).to_owned())
        };
        assert_eq!(limit(&read, in_mask), expected);
    }

    const UNIFIED: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const SPLIT: &str = "30 24 0:26 / /cg/memory rw - cgroup cgroup rw,memory\n\
                         31 24 0:27 /docker/x /cg/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn without_files_the_mask_counts() {
        check(Some(6), 6, &[]);
        check(Some(0), 1, &[]);
        check(None, 1, &[]);
    }

    #[test]
    fn affinity_is_counted() {
        let status = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,5,8-9\n";
        check(None, 6, &[("/proc/thread-self/status", status)]);
        check(Some(2), 2, &[("/proc/thread-self/status", status)]);
        for broken in ["", "x", "3-1", "1,,2", "0-18446744073709551615"] {
            let status = format!("Cpus_allowed_list:\t{broken}\n");
            check(None, 1, &[("/proc/thread-self/status", &status)]);
        }
    }

    #[test]
    fn version_2_takes_the_smallest_quota_on_the_way_up() {
        let files = [
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/proc/self/mountinfo", UNIFIED),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "250000 100000\n"),
        ];
        check(Some(64), 3, &files);
    }

    #[test]
    fn version_1_reads_quota_and_period_below_the_mounted_root() {
        let groups = "3:memory:/docker/x\n2:cpu,cpuacct:/docker/x/y\n";
        let files = [
            ("/proc/self/cgroup", groups),
            ("/proc/self/mountinfo", SPLIT),
            ("/cg/cpu/y/cpu.cfs_quota_us", "150000\n"),
            ("/cg/cpu/y/cpu.cfs_period_us", "100000\n"),
            ("/cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/cg/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        check(Some(64), 2, &files);
    }

    #[test]
    fn broken_quotas_are_ignored() {
        for broken in ["", "0 100000", "1 0", "-5 100000", "x y", "5"] {
            let files = [
                ("/proc/self/cgroup", "0::/\n:::\nx\n"),
                ("/proc/self/mountinfo", UNIFIED),
                ("/sys/fs/cgroup/cpu.max", broken),
            ];
            check(Some(5), 5, &files);
        }
    }

    #[test]
    fn this_machine_has_at_least_one() {
        assert!(available_parallelism() >= 1);
    }
}
