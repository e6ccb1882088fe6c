//! What a transport is told before it opens, from the case.

use wiregauge_plan::Case;
use wiregauge_transport::{Rank, Role, Setup, Site, Traffic};

/// Returns the device that the sockets of a rank are bound to: that of its interface, unless it is
/// connected to a rank on the same host, which is reached by the loopback.
pub fn device(case: &Case, rank: usize, site: &Site) -> Option<String> {
    match site {
        Site::Interface(name) if case.topology.is_alone_on_host(rank) => Some(name.clone()),
        _ => None,
    }
}

/// The set-up of an end of a case.
pub fn setup(case: &Case, role: Role, cookie: [u8; 32]) -> Setup {
    let profile = case.profile();
    let named = case.settings.interfaces();
    let traffic = if profile.is_one_sided { Traffic::OneSided } else { profile.traffic };
    let number = case.topology.position(role).unwrap_or_default() as u32;
    Setup {
        rank: Rank { number, of: case.topology.ranks.len() as u32 },
        threads: case.topology.most_threads(),
        ends: case.topology.endpoints_of_role(role),
        lengths: profile.lengths(),
        window: profile.queue_depth,
        outruns_window: profile.outruns_window,
        loss_after: case.loss_after,
        timeout: case.timeout,
        cookie,
        seed: case.seed,
        site: named.map_or(Site::Loopback, |names| Site::Interface(names.of(role).to_string())),
        kind: profile.value_kind,
        settings: case.pattern.settings_of(case, role),
        ..Setup::new(role.side(), traffic, case.wait, case.size.0 as usize)
    }
}
