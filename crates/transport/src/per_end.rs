//! Values of which each end may have its own, such as the names of network interfaces: one for
//! both, or the client's and the server's with a comma between.

use super::traffic::Role;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use std::ops::Deref;
use std::str::FromStr;

/// A value for each end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PerEnd<T> {
    /// That of the client.
    pub client: T,
    /// That of the server.
    pub server: T,
}

impl<T> PerEnd<T> {
    /// That of a role.
    pub fn of(&self, role: Role) -> &T {
        role.pick(&self.client, &self.server)
    }
}

impl<T: FromStr> FromStr for PerEnd<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<PerEnd<T>, T::Err> {
        let (client, server) = text.split_once(',').unwrap_or((text, text));
        Ok(PerEnd { client: client.parse()?, server: server.parse()? })
    }
}

impl<T: Display + PartialEq> Display for PerEnd<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.client == self.server {
            true => self.client.fmt(f),
            false => write!(f, "{},{}", self.client, self.server),
        }
    }
}

/// The signs of a name that the kernel gives to a device, and no path.
fn is_plain(name: &str, most: usize, more: &[u8]) -> bool {
    let sign = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b) || more.contains(&b);
    (1..=most).contains(&name.len()) && name.bytes().all(sign)
}

/// A type of names, with what makes a text one of them and what the refusal says.
macro_rules! names {
    ($($(#[$of:meta])* $name:ident($text:ident) { $holds:expr, $invalid:literal })+) => {$(
        $(#[$of])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl FromStr for $name {
            type Err = String;

            fn from_str($text: &str) -> Result<$name, String> {
                ensure!($holds, $invalid);
                Ok($name($text.to_owned()))
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Display for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

names! {
    /// The name of a network interface. The longest is IFNAMSIZ of linux/if.h without the closing
    /// zero.
    InterfaceName(text) {
        is_plain(text, 15, b":@"),
        "invalid interface '{text}': use a name such as ib0, or the client's and the server's \
         such as ib0,ib1"
    }
    /// The name of an RDMA device. The longest is IB_DEVICE_NAME_MAX of the kernel's
    /// rdma/ib_verbs.h without the closing zero.
    DeviceName(text) {
        is_plain(text, 63, b"") && !text.starts_with('.'),
        "invalid device '{text}': use a name such as mlx5_0 (`rdma link show`), or the client's \
         and the server's such as mlx5_0,mlx5_1"
    }
}

/// A number of one byte from `LEAST` on, such as that of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<const LEAST: u8>(pub u8);

impl<const LEAST: u8> FromStr for Number<LEAST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| *number >= LEAST);
        number.map(Number).ok_or_else(|| {
            format!(
                "'{text}' is out of range: use {LEAST} to 255, or the client's and the server's \
                 such as {LEAST},2"
            )
        })
    }
}

impl<const LEAST: u8> Display for Number<LEAST> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: FromStr<Err = String> + Display + PartialEq>(text: &str) -> Result<String, String> {
        text.parse::<PerEnd<T>>().map(|both| both.to_string())
    }

    #[test]
    fn one_value_is_that_of_both_ends_and_of_two_each_has_its_own() {
        let both: PerEnd<DeviceName> = "mlx5_0,mlx5_1".parse().unwrap();
        assert_eq!((&**both.of(Role::Client), &**both.of(Role::Server)), ("mlx5_0", "mlx5_1"));
        assert_eq!(shown::<DeviceName>("rxe0"), Ok("rxe0".into()));
        assert_eq!(shown::<DeviceName>("rxe0,rxe0"), Ok("rxe0".into()));
        assert_eq!(shown::<Number<1>>("1,2"), Ok("1,2".into()));
        assert_eq!(shown::<InterfaceName>("ib0,ib1"), Ok("ib0,ib1".into()));
    }

    #[test]
    fn what_is_no_value_is_refused_with_what_is() {
        for wrong in ["", "a/b", "..", "a,", ",a", "a,b,c"] {
            let refusal = shown::<DeviceName>(wrong).unwrap_err();
            assert!(refusal.contains("mlx5_0,mlx5_1"), "{wrong}: {refusal}");
        }
        for wrong in ["0", "256", "1,0", "-1", "one"] {
            let refusal = shown::<Number<1>>(wrong).unwrap_err();
            assert!(refusal.contains("1 to 255"), "{wrong}: {refusal}");
        }
        assert_eq!(shown::<Number<0>>("0"), Ok("0".into()));
        assert!(shown::<InterfaceName>("a name too long for it").is_err());
    }
}
